package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// across is a file as all members that change it have it. Each is compared with its base.
type across struct {
	path string // "" while the changes of one member are shown
	from string // the member whose changes were shown
	list []crossed
	runs []int // lines of the drawing that begin changes which another member touches, too
}

// crossed is the file of one member.
type crossed struct {
	changes view.Changes
	files   []view.FileDiff
	file    view.FileDiff
	marks   []bool   // its lines that others touch, too
	same    []string // members that touch them
	unknown []string // members whose lines cannot be compared with these
}

// cross compares a file of members with each other.
func cross(path string, all []view.Changes) (out []crossed) {
	for _, c := range all {
		x := crossed{changes: c, files: view.ParseDiff(c.Patch)}
		if i := slices.IndexFunc(x.files, func(f view.FileDiff) bool { return f.Path == path }); i >= 0 {
			x.file = x.files[i]
		}
		x.marks = make([]bool, len(x.file.Lines))
		out = append(out, x)
	}
	for i := range out {
		x := &out[i]
		for j, y := range out {
			if i == j || y.file.Path == "" || x.file.Path == "" {
				continue
			}
			lines, known := x.file.Crossed(y.file)
			switch {
			case !known && len(x.file.Lines) > 0 && len(y.file.Lines) > 0:
				x.unknown = append(x.unknown, y.changes.Member)
			case slices.Contains(lines, true):
				x.same = append(x.same, y.changes.Member)
			}
			for k, is := range lines {
				x.marks[k] = x.marks[k] || is
			}
		}
	}
	return out
}

// goAcross shows the selected file as all members change it.
func (r *run) goAcross() {
	m := r.m
	it, ok := m.row()
	if !ok || it.on.Thing != view.OnChange {
		m.say("no file is selected", true)
		return
	}
	path := it.on.Change.Path
	if len(m.changes.Also[path]) == 0 {
		m.say("no other member changes "+plain.Visible(path), true)
		return
	}
	m.across = across{path: path, from: m.changes.Member}
	m.cursor, m.scroll, m.diff, m.filter = crossID(m.changes.Member), 0, cursor{}, ""
	r.readPlace()
}

func crossID(member string) string { return "across:" + member }

// leaveAcross shows the changes of one member again.
func (r *run) leaveAcross() {
	m := r.m
	path := m.across.path
	m.across = across{}
	m.cursor, m.scroll = "file:"+path, 0
	r.readPlace()
}

// openCrossed goes to the changes of the member of a row, and to the file among them.
func (r *run) openCrossed(it item) {
	m := r.m
	if it.cross == 0 || it.cross > len(m.across.list) {
		return
	}
	x := m.across.list[it.cross-1]
	m.changes, m.files, m.since = x.changes, x.files, ""
	r.leaveAcross()
	m.refresh()
	m.enterDiff()
}

// inAcross is a command while a file of all members is shown; false where it is the same as elsewhere.
func (r *run) inAcross(id string) bool {
	m := r.m
	switch id {
	case "across", "back":
		if id == "back" && m.filter != "" {
			return false
		}
		r.leaveAcross()
	case "base":
		m.say("each member is compared with its base here", true)
	case "sides":
		m.turnSides()
	case "next-file", "previous-file":
		m.move(map[string]int{"next-file": 1, "previous-file": -1}[id])
	case "next-change":
		if i := slices.IndexFunc(m.across.runs, func(at int) bool { return at > m.scroll }); i >= 0 {
			m.scroll = m.across.runs[i]
		}
	case "previous-change":
		for _, at := range slices.Backward(m.across.runs) {
			if at < m.scroll {
				m.scroll = at
				break
			}
		}
	case "turn", "pager":
		m.say("not with the changes of all members: "+m.keys.hint("open", "goes to those of one"), true)
	default:
		return false
	}
	return true
}

// readAcross reads the file of all members that change it.
func (r *run) readAcross() {
	t, path, from := r.team, r.m.across.path, r.m.across.from
	r.read("changes", func(ctx context.Context) func(*model) {
		merges, err := t.Merges(ctx)
		if err != nil {
			return func(m *model) { m.fail("", err, "") }
		}
		names := []string{from}
		var all []view.Changes
		for i := 0; i < len(names); i++ {
			c, err := t.Changes(ctx, names[i], "")
			if err != nil {
				c = view.Changes{Member: names[i], Why: err.Error()}
			}
			if all = append(all, c); i == 0 {
				names = append(names, slices.Sorted(slices.Values(c.Also[path]))...)
			}
		}
		list := cross(path, all)
		return func(m *model) {
			m.merges = merges
			if m.across.path == path && m.across.from == from {
				m.across.list = list
			}
		}
	})
}

// crossRows are the members that change the file.
func (m *model) crossRows() group {
	s := group{id: "across", title: plain.Visible(m.across.path), note: "reading what the members have changed"}
	for i, x := range m.across.list {
		name := x.changes.Member
		s.items = append(s.items, item{
			id: crossID(name), cross: i + 1, text: name,
			on: view.Target{Thing: view.OnChange, Member: m.memberOf(name), Change: &view.Change{Path: m.across.path}},
			line: func(w int) string {
				sign, said := " ", view.Clean(name)
				if len(x.same) > 0 {
					sign = m.style.Yellow("!")
					said += "  " + m.style.Yellow("same lines as "+view.Clean(strings.Join(x.same, " ")))
				}
				if len(x.unknown) > 0 {
					said += "  other base than " + view.Clean(strings.Join(x.unknown, " "))
				}
				counts := m.style.Green(fmt.Sprintf("+%d", x.file.Added)) + " " + m.style.Red(fmt.Sprintf("-%d", x.file.Removed))
				switch {
				case x.file.Path == "":
					counts = "-"
				case x.file.Added+x.file.Removed == 0:
					counts = x.file.State
				}
				return columns(w, " ", []string{sign, said, counts}, []int{1, 0, clamp(view.Width(counts), 9, max(9, w/3))})
			},
		})
	}
	if n := len(m.across.list); n > 0 {
		whole := fmt.Sprintf("%s of %d members", s.title, n)
		if n == 1 {
			whole = s.title + " of one member"
		}
		s.titles = []string{whole, s.title}
		s.title = "CHANGES of " + whole
	}
	return s
}

// crossLines draws the file of the member of a row. Lines that others touch, too, are marked.
func (m *model) crossLines(it item, width, height int) []string {
	m.across.runs = nil
	if it.cross > len(m.across.list) {
		return nil
	}
	x := m.across.list[it.cross-1]
	head := m.style.Bold(view.Cut(view.Clean(x.changes.Member), width))
	if said := x.changes.Compared(); said != "" {
		head = view.Cut(head+"  "+said, width)
	}
	if x.file.Path == "" {
		why := view.Clean(x.changes.Why)
		if why == "" {
			why = "its content is not shown: " + plain.Visible(m.across.path) + " is large, or no file of text"
			if !slices.Contains(x.changes.Untracked, m.across.path) {
				why = "no change of " + plain.Visible(m.across.path) + " any more"
			}
		}
		return append([]string{head}, wrapped(why, width)...)
	}
	d := m.drawFile(x.file, x.changes.Comments, width, -1, func(i int) string {
		if x.marks[i] {
			return m.style.Yellow("!")
		}
		return " "
	})
	for i, is := range x.marks {
		if is && (i == 0 || !x.marks[i-1]) && d.at[i] > 0 {
			m.across.runs = append(m.across.runs, d.at[i]+1)
		}
	}
	return m.scrolled(append([]string{head}, d.lines...), height)
}

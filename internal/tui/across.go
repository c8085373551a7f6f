package tui

import (
	"context"
	"fmt"
	"slices"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// across is a file as all members that change it have it. Each is compared with its base.
type across struct {
	path string // "" while the changes of one member are shown
	from string // the member whose changes were shown
	list []view.Across
	runs []int // lines of the drawing that begin changes which another member touches, too
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
	m.changes, m.files, m.since = x.Changes, x.Files, ""
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
		list, _ := view.ReadAcross(ctx, t, path, from) // an error is shown in its place
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
		name := x.Changes.Member
		s.items = append(s.items, item{
			id: crossID(name), cross: i + 1, text: name,
			on: view.Target{Thing: view.OnChange, Member: m.memberOf(name), Change: &view.Change{Path: m.across.path}},
			line: func(w int) string {
				sign, said := " ", view.Clean(name)
				if same := x.SameWords(); same != "" {
					sign = m.style.Yellow("!")
					said += "  " + m.style.Yellow(same)
				}
				if other := x.UnknownWords(); other != "" {
					said += "  " + other
				}
				counts := m.style.Green(fmt.Sprintf("+%d", x.File.Added)) + " " + m.style.Red(fmt.Sprintf("-%d", x.File.Removed))
				switch {
				case x.File.Path == "":
					counts = "-"
				case x.File.Added+x.File.Removed == 0:
					counts = x.File.State
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
	head := m.style.Bold(view.Cut(view.Clean(x.Changes.Member), width))
	if said := x.Changes.Compared(); said != "" {
		head = view.Cut(head+"  "+said, width)
	}
	if why := x.Why(); why != "" {
		return append([]string{head}, wrapped(why, width)...)
	}
	d := m.drawFile(x.File, x.Changes.Comments, width, -1, func(i int) string {
		if x.Marks[i] {
			return m.style.Yellow("!")
		}
		return " "
	})
	for i, is := range x.Marks {
		if is && (i == 0 || !x.Marks[i-1]) && d.at[i] > 0 {
			m.across.runs = append(m.across.runs, d.at[i]+1)
		}
	}
	return m.scrolled(append([]string{head}, d.lines...), height)
}

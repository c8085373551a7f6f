package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// cursor is a place in the changes of a file.
type cursor struct {
	in   bool // the keys move it, not the list of files
	path string
	at   int // line of the diff
	mark int // the other end of the marked lines, from 1; 0: none are marked
}

// setChanges shows changes that were read. The cursor stays on its line.
func (m *model) setChanges(c view.Changes, files []view.FileDiff) {
	old, _ := m.file()
	m.changes, m.files = c, files
	f, ok := m.fileAt(m.diff.path)
	if !ok {
		m.diff = cursor{}
		return
	}
	line := func(n int) int {
		if n >= 0 && n < len(old.Lines) && old.Path == f.Path {
			if i := slices.Index(f.Lines, old.Lines[n]); i >= 0 {
				return i
			}
		}
		return clamp(n, 0, max(0, len(f.Lines)-1))
	}
	m.diff.at = line(m.diff.at)
	if m.diff.mark > 0 {
		m.diff.mark = line(m.diff.mark-1) + 1
	}
}

// file is the selected one.
func (m *model) file() (view.FileDiff, bool) {
	it, ok := m.row()
	if !ok || it.file == 0 || it.file > len(m.files) {
		return view.FileDiff{}, false
	}
	return m.files[it.file-1], true
}

func (m *model) fileAt(path string) (view.FileDiff, bool) {
	i := slices.IndexFunc(m.files, func(f view.FileDiff) bool { return f.Path == path })
	if i < 0 {
		return view.FileDiff{}, false
	}
	return m.files[i], true
}

// enterDiff gives the keys to the diff of the selected file.
func (m *model) enterDiff() {
	f, ok := m.file()
	if !ok || len(f.Lines) == 0 {
		return
	}
	if m.diff.path != f.Path {
		m.diff = cursor{path: f.Path, at: max(0, nextChange(f.Lines, -1, 1))}
	}
	m.diff.in = true
}

// nextChange is the first line of the next run of changed lines, -1 for none.
func nextChange(lines []view.DiffLine, at, step int) int {
	changed := func(i int) bool {
		return i >= 0 && i < len(lines) && (lines[i].Kind == view.Added || lines[i].Kind == view.Removed)
	}
	for i := at + step; i >= 0 && i < len(lines); i += step {
		if changed(i) && !changed(i-1) && i != at {
			return i
		}
	}
	return -1
}

// inChanges is a command among the changes of a member; false where it is the same as
// elsewhere.
func (r *run) inChanges(id string, page int) bool {
	m := r.m
	if m.across.path != "" {
		return r.inAcross(id)
	}
	f, ok := m.file()
	move := func(to int) { m.diff.at = clamp(to, 0, max(0, len(f.Lines)-1)) }
	switch id {
	case "base":
		all := view.Sinces()
		m.since = all[(slices.Index(all, m.since)+1)%len(all)]
		m.diff = cursor{}
		r.readPlace()
		m.say("changes "+view.SinceWords(m.since), false)
	case "across":
		r.goAcross()
	case "sides":
		m.turnSides()
	case "next-file", "previous-file":
		in := m.diff.in
		step := map[string]int{"next-file": 1, "previous-file": -1}[id]
		m.move(step)
		if _, ok := m.file(); !ok {
			m.move(-step)
		}
		m.diff.in = false
		if in {
			m.enterDiff()
		}
	case "next-change", "previous-change":
		if !ok {
			return true
		}
		m.enterDiff()
		step := map[string]int{"next-change": 1, "previous-change": -1}[id]
		if to := nextChange(f.Lines, m.diff.at, step); to >= 0 {
			move(to)
		}
	case "turn":
		switch {
		case !ok:
		case m.diff.mark > 0:
			m.diff.mark = 0
		default:
			m.enterDiff()
			m.diff.mark = m.diff.at + 1
		}
	default:
		if !m.diff.in || !ok {
			return false
		}
		switch id {
		case "down":
			move(m.diff.at + 1)
		case "up":
			move(m.diff.at - 1)
		case "top":
			move(0)
		case "bottom":
			move(len(f.Lines))
		case "scroll-down":
			move(m.diff.at + page)
		case "scroll-up":
			move(m.diff.at - page)
		case "back":
			if m.diff.mark > 0 {
				m.diff.mark = 0
			} else {
				m.diff.in = false
			}
		case "next-list", "previous-list":
			m.diff.in, m.diff.mark = false, 0
		default:
			return false
		}
	}
	return true
}

// changeTarget is what an action on changes is about: the marked lines, the line of the
// cursor or, where the keys move the list, the file.
func (m *model) changeTarget(it item) view.Target {
	t := it.on
	c := *t.Change
	if it.cross > 0 && it.cross <= len(m.across.list) {
		of := m.across.list[it.cross-1].Changes
		c.Drafts, c.Reviewed = of.Drafts(), of.Reviewed[c.Path]
		t.Change = &c
		return t
	}
	c.Drafts, c.Reviewed = m.changes.Drafts(), m.changes.Reviewed[c.Path]
	t.Change = &c
	f, ok := m.file()
	if !m.diff.in || !ok || m.diff.path != f.Path || m.diff.at >= len(f.Lines) {
		return t
	}
	from, to := m.diff.at, m.diff.at
	if m.diff.mark > 0 {
		from, to = min(from, m.diff.mark-1), max(to, m.diff.mark-1)
	}
	first, last := 0, 0
	c.Old = !slices.ContainsFunc(f.Lines[from:to+1], func(l view.DiffLine) bool { return l.Kind == view.Added || l.Kind == view.Context })
	number := func(l view.DiffLine) int {
		switch {
		case l.Kind == view.Removed && c.Old:
			return l.Old
		case l.Kind == view.Added, l.Kind == view.Context:
			return l.New
		}
		return 0
	}
	for _, l := range f.Lines[from : to+1] {
		if n := number(l); n > 0 {
			if first == 0 {
				first = n
			}
			last = n
		}
	}
	switch first {
	case 0:
		c.Old = false
	case last:
		c.Lines = fmt.Sprint(first)
	default:
		c.Lines = fmt.Sprintf("%d-%d", first, last)
	}
	for _, x := range m.changes.Comments {
		if x.Path == f.Path && f.LineOf(x) == m.diff.at {
			c.Comment = &x // the newest
		}
	}
	return t
}

// search is how far the search for a member with changes has come.
type search int

const (
	notSearched search = iota
	searching
	searched
)

// chooseChanges chooses the member of the selected row for the place of changes. Without one it stays
// the member that was chosen last.
func (m *model) chooseChanges() {
	if it, ok := m.row(); ok && m.at != inChanges && it.on.Member != nil && !it.on.Member.Lead && it.on.Member.Name != m.changes.Member {
		m.changes, m.files, m.diff = view.Changes{Member: it.on.Member.Name}, nil, cursor{}
	}
}

// noChanges says why there are no files.
func (m *model) noChanges() string {
	switch {
	case m.changes.Member != "":
		return view.Clean(m.changes.Why)
	case m.search == searching:
		return "looking for a member with changes"
	}
	note := "no member has changed a file yet"
	if key := m.keys.first("changes"); key != "" {
		note += ": " + key + " on a member shows its changes"
	}
	return note
}

// changeKeys are the keys in the place of changes.
func (m *model) changeKeys() []string {
	k := m.keys
	main := []string{"comment", "edit-comment", "send-review", "reviewed", "not-reviewed", "merge-ready"}
	actions := m.actionKeys(main...)
	if it, ok := m.row(); ok && it.on.Merge != nil && !it.gone {
		return append([]string{k.hint("open", "gate log")}, actions...)
	}
	if m.changes.Member == "" || len(actions) == 0 {
		return actions
	}
	var keys []string
	if m.across.path != "" {
		keys = append(keys, k.hint("open", "its changes"), k.hint("next-change", "same lines"), k.hint("back", "files"))
		return append(append(keys, actions[:len(main)]...), actions[len(main):]...)
	}
	if m.diff.in {
		keys = append(keys, actions[0], k.hint("next-change", "next change"))
		keys = append(keys, actions[1:len(main)]...)
		keys = append(keys, k.hint("turn", "mark"), k.hint("next-file", "next file"), k.hint("base", "compare"), k.hint("back", "files"))
	} else {
		keys = append(keys, k.hint("open", "read"))
		if it, ok := m.row(); ok && it.on.Change != nil && len(m.changes.Also[it.on.Change.Path]) > 0 {
			keys = append(keys, k.hint("across", "all members"))
		}
		keys = append(keys, actions[:len(main)]...)
		keys = append(keys, k.hint("base", "compare"))
	}
	if m.cols >= sidesFrom {
		keys = append(keys, k.hint("sides", map[bool]string{true: "one column", false: "side by side"}[m.sides()]))
	}
	return append(keys, actions[len(main):]...)
}

func (m *model) fileRows() group {
	if m.across.path != "" {
		return m.crossRows()
	}
	added, removed := 0, 0
	s := group{id: "files", note: m.noChanges()}
	open, drafts := map[string]int{}, map[string]int{}
	for _, c := range m.changes.Comments {
		switch {
		case c.Draft():
			drafts[c.Path]++
		case c.State != "handled":
			open[c.Path]++
		}
	}
	for i, f := range m.files {
		added, removed = added+f.Added, removed+f.Removed
		also := m.changes.Also[f.Path]
		s.items = append(s.items, item{
			id: "file:" + f.Path, file: i + 1, text: f.Path + " " + f.State,
			on: view.Target{Thing: view.OnChange, Member: m.memberOf(m.changes.Member), Change: &view.Change{Path: f.Path}},
			line: func(w int) string {
				counts := m.style.Green(fmt.Sprintf("+%d", f.Added)) + " " + m.style.Red(fmt.Sprintf("-%d", f.Removed))
				if f.Added+f.Removed == 0 {
					counts = f.State
				}
				sign, path := " ", plain.Visible(f.Path)
				if f.From != "" {
					path = plain.Visible(f.From) + " -> " + path
				}
				if m.changes.Reviewed[f.Path] {
					sign = m.style.Green("✓")
				}
				sign, path = m.alsoOf(also, sign, path)
				if n := open[f.Path]; n > 0 {
					path += m.style.Cyan(fmt.Sprintf("  %d open", n))
				}
				if n := drafts[f.Path]; n > 0 {
					path += m.style.Cyan("  " + map[bool]string{true: "1 draft", false: fmt.Sprintf("%d drafts", n)}[n == 1])
				}
				return columns(w, " ", []string{sign, path, counts}, []int{1, 0, clamp(view.Width(counts), 9, max(9, w/3))})
			},
		})
	}
	s.title = "CHANGES"
	if m.changes.Member != "" {
		m.changesHead(&s, added, removed)
	}
	for _, f := range m.changes.Untracked {
		also := m.changes.Also[f]
		s.items = append(s.items, item{id: "file:" + f, text: f + " untracked",
			on: view.Target{Thing: view.OnChange, Member: m.memberOf(m.changes.Member), Change: &view.Change{Path: f}}, line: func(w int) string {
				sign, path := m.alsoOf(also, " ", plain.Visible(f))
				return columns(w, " ", []string{sign, path, "not in git"}, []int{1, 0, 10})
			}})
	}
	return s
}

// alsoOf adds the other members that change a file.
func (m *model) alsoOf(also []string, sign, path string) (string, string) {
	if len(also) == 0 {
		return sign, path
	}
	return m.style.Yellow("!"), path + "  also " + view.Clean(strings.Join(also, " "))
}

// changesHead sets the title of the files: whose changes they are and what they are compared with. The
// counts follow it, and stay longest where it is narrow.
func (m *model) changesHead(s *group, added, removed int) {
	name, compared := view.Clean(m.changes.Member), m.changes.Compared()
	if compared == "" && m.since != "" { // they are being read
		compared = view.SinceWords(m.since)
	}
	whole := strings.TrimSpace(name + " " + compared)
	s.title, s.titles = "CHANGES of "+whole, []string{whole, name}
	lines := fmt.Sprintf("+%d -%d", added, removed)
	s.parts = [][]string{{files(len(m.files)) + "  " + lines, lines}}
	if round, open, handled := m.changes.LastRound(); round > 0 {
		s.parts = append(s.parts, []string{fmt.Sprintf("round %d: %d open, %d handled", round, open, handled), fmt.Sprintf("%d open", open)})
	}
	if n := m.changes.Drafts(); n > 0 {
		s.parts = append(s.parts, []string{m.keys.hint("send-review", fmt.Sprintf("send %d", n)), fmt.Sprintf("%d unsent", n)})
	}
}

func files(n int) string {
	return map[bool]string{true: "1 file", false: fmt.Sprintf("%d files", n)}[n == 1]
}

// diffLines are the changes of the selected file, with what was said about them.
func (m *model) diffLines(it item, width, height int) []string {
	switch {
	case it.on.Merge != nil:
		return m.mergeLines(*it.on.Merge, width, height)
	case it.cross > 0:
		return m.crossLines(it, width, height)
	case it.file == 0 || it.file > len(m.files):
		if m.changes.Why != "" {
			return wrapped(view.Clean(m.changes.Why), width)
		}
		return nil
	}
	file := m.files[it.file-1]
	in := m.diff.in && m.diff.path == file.Path
	at, lead := -1, func(int) string { return "" }
	if in {
		at = m.diff.at
		lead = func(i int) string {
			if i == m.diff.at || m.diff.mark > 0 && i >= min(m.diff.at, m.diff.mark-1) && i <= max(m.diff.at, m.diff.mark-1) {
				return m.style.Bold("›")
			}
			return " "
		}
	}
	d := m.drawFile(file, m.changes.Comments, width, at, lead)
	cursor := -1
	if in && m.diff.at < len(d.at) {
		cursor = d.at[m.diff.at]
	}
	return m.scrolledDiff(d.lines, cursor, d.end, height)
}

// drawnFile has the lines of the screen that show the changes of a file.
type drawnFile struct {
	lines []string
	at    []int // where each line of the diff is
	end   int   // the last line of what stands below that of the cursor
}

// drawFile draws the changes of a file, with what was said about them. The cursor is on the line at of
// the diff, -1 for none; lead is what stands before a line.
func (m *model) drawFile(file view.FileDiff, comments []view.Comment, width, at int, lead func(int) string) drawnFile {
	lines := []string{m.style.Bold(view.Cut(plain.Visible(file.Path), width))}
	if file.State != "changed" {
		lines = append(lines, file.State)
	}
	below := map[int][]view.Comment{}
	for _, c := range comments {
		if c.Path == file.Path {
			i := file.LineOf(c)
			below[i] = append(below[i], c)
		}
	}
	put := func(i int) {
		for _, c := range below[i] {
			lines = append(lines, m.commentLines(c, width)...)
		}
	}
	put(-1)
	shown := m.shown(file)
	number := 1
	for _, l := range file.Lines {
		number = max(number, len(fmt.Sprint(max(l.Old, l.New))))
	}
	d := drawnFile{at: make([]int, len(file.Lines))}
	if m.sides() {
		for _, p := range pairs(shown.lines, shown.With) {
			for _, i := range []int{p.left, p.right} {
				if i >= 0 {
					d.at[i] = len(lines)
				}
			}
			lines = append(lines, m.pairLine(shown, p, number, lead, width))
			for _, i := range []int{p.left, p.right} {
				if i >= 0 && (i == p.right || p.left != p.right) {
					put(i)
				}
			}
			if p.left == at || p.right == at {
				d.end = len(lines) - 1
			}
		}
		d.lines = lines
		return d
	}
	for i, l := range shown.lines {
		d.at[i] = len(lines)
		switch l.Kind {
		case view.Added, view.Removed, view.Context:
			gutter := lead(i) + m.style.Dim(fmt.Sprintf("%*d ", number, max(l.Old, l.New)))
			lines = append(lines, view.Cut(gutter+shown.line(m.style, i), width))
		case view.Hunk:
			text := l.Text
			if i == at {
				text = "›" + text
			}
			lines = append(lines, m.style.Cyan(view.Cut(text, width)))
		case view.NoEnd:
			lines = append(lines, m.style.Dim(view.Cut(strings.Repeat(" ", number+1)+l.Text, width)))
		}
		put(i)
		if i == at {
			d.end = len(lines) - 1
		}
	}
	d.lines = lines
	return d
}

// scrolledDiff returns the visible part of a diff: the line of the cursor, and what stands below it up
// to end.
func (m *model) scrolledDiff(lines []string, cursor, end, height int) []string {
	if cursor >= 0 {
		m.scroll = clamp(m.scroll, min(end, cursor+height-2)-height+2, cursor)
	}
	return m.scrolled(lines, height)
}

// commentLines are a comment beside the lines that it is about.
func (m *model) commentLines(c view.Comment, width int) (out []string) {
	head := c.State + " " + c.Name
	switch {
	case c.Changed:
		head += fmt.Sprintf(", changed since, was line %d", c.First)
	case c.Last > c.First:
		head += fmt.Sprintf(", lines %d to %d", c.First, c.Last)
	}
	bar := "    " + m.style.Yellow("▏") + " "
	if c.State == "handled" {
		bar = "    " + m.style.Green("▏") + " "
	}
	for _, l := range wrapped(m.style.Bold(head+":")+" "+safe(c.Text), max(1, width-6)) {
		out = append(out, view.Cut(bar+l, width))
	}
	if c.Answer != "" {
		for _, l := range wrapped("answer: "+safe(c.Answer), max(1, width-6)) {
			out = append(out, view.Cut(bar+l, width))
		}
	}
	return out
}

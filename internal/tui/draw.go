package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
)

// frame is the content of the terminal, with the data needed to interpret input.
type frame struct {
	lines  []string
	cursor bool
	x, y   int
	// seen has the requests that are visible as a whole, with their hash: only these can be
	// answered by one key.
	seen    map[int64]string
	preview string // the Seen of a preview that is visible as a whole
	more    bool   // the open request goes on below the screen, or above it
	regions []region
	bar     bar
}

// region is the position of a row, for the mouse.
type region struct {
	y, left, right int // right is behind its last cell
	id             string
}

func (f *frame) add(lines ...string) { f.lines = append(f.lines, lines...) }

// draw returns the frame of the model: exactly its rows, none wider than its columns.
func (m *model) draw() frame {
	f := frame{seen: map[int64]string{}}
	if m.cols <= 0 || m.rows <= 0 {
		return f
	}
	f.add(m.head())
	room, said := m.rows-1, ""
	if m.rows >= 3 {
		room--
		if m.rows >= saidFrom {
			said = m.said()
		}
		if said != "" {
			room--
		}
	}
	switch {
	case room <= 0:
	case m.over.kind != noOverlay:
		m.drawOverlay(&f, room)
	case !m.have && m.at != inTeams:
		f.add(m.waitingLines()...)
	case m.at == inTeam && m.small():
		m.drawSmall(&f, room)
	case m.at == inTeam && !m.wide():
		m.drawNarrow(&f, room)
	case m.at == inTeam:
		m.drawHome(&f, room)
	case m.at == inScreen:
		m.drawScreen(&f, room)
	case m.at == inLog:
		m.drawLog(&f, room)
	case m.at == inPager:
		m.drawPager(&f, room)
	case m.at == inTime:
		m.drawTime(&f, room)
	case m.at == inTasks && m.tasksAs == "graph":
		m.drawGraph(&f, room)
	case m.inColumns():
		m.drawColumns(&f, room)
	default:
		m.drawPlace(&f, room)
	}
	for len(f.lines) < room+1 {
		f.add("")
	}
	if m.rows >= 3 {
		f.lines = f.lines[:room+1]
		if said != "" {
			f.add(said)
		}
		foot := m.foot(f.more)
		f.add(foot)
		f.regions = slices.DeleteFunc(f.regions, func(g region) bool { return g.y > room })
		f.regions = append(f.regions, m.footRegions(strip(foot), f.more)...)
	}
	f.lines = f.lines[:min(len(f.lines), m.rows)]
	for len(f.lines) < m.rows {
		f.add("")
	}
	for i, l := range f.lines {
		l = strings.TrimRight(view.Cut(l, m.cols), " ")
		if m.ascii {
			l = asciiOnly(l)
		}
		f.lines[i] = l
	}
	return f
}

func (m *model) waitingLines() []string {
	if m.problem != "" {
		return wrapped(" "+m.problem, m.cols-1)
	}
	return []string{" reading the team"}
}

// head returns the first line: whole words only, most important first.
func (m *model) head() string {
	if m.at == inTeams {
		line := " " + m.style.Bold("teamctl")
		if m.teamsLost != "" {
			line += "  " + m.style.Yellow("as of "+m.teamsAt.Local().Format("15:04:05")+": "+view.Clean(m.teamsLost))
		}
		return line
	}
	name := m.style.Bold(view.Clean(m.name))
	c := m.snap.Count()
	needs := ""
	if _, n := m.needs(); n > 0 {
		needs = m.style.Yellow(fmt.Sprintf("! %d need you", n))
	}
	var parts []string
	switch {
	case !m.have:
	case c.Total == 0:
		parts = []string{"no tasks"}
	case m.cols < 60:
		parts = []string{fmt.Sprintf("%d/%d", c.Done, c.Total)}
	default:
		words := append([]string{fmt.Sprintf("%d/%d done", c.Done, c.Total)}, countWords(c, m.style)...)
		if !m.snap.Down.IsZero() { // the room is for the time of the facts
			words = words[:1]
		}
		parts = []string{strings.Join(words, " · ")}
	}
	if m.snap.Spent.Cost > 0 || m.snap.Spent.Known {
		parts = append(parts, m.snap.Spent.Money()+"  "+m.snap.Spent.Words()+" tok")
	}
	if m.readOnly {
		parts = append(parts, "read only")
	}
	if needs != "" && (m.at != inTeam || m.small()) {
		parts = append([]string{needs}, parts...)
	}
	if m.snap.Repo != "" {
		parts = append(parts, m.style.Dim(view.Clean(m.snap.Repo)))
	}
	line := " " + name
	for _, words := range [][]string{m.problemWords(), m.troubleWords(), m.downWords()} {
		for _, p := range words { // the longest that fits
			if more := line + "  " + m.style.Yellow(p); view.Width(more) <= m.cols {
				line = more
				break
			}
		}
	}
	for _, p := range parts {
		if more := line + "  " + p; view.Width(more) <= m.cols {
			line = more
		} else if line == " "+name {
			line = more // indicates that something was cut
			break
		}
	}
	return line
}

// downWords says up to when the facts are right, from long to short; nothing while they are current.
func (m *model) downWords() []string {
	words := view.DownWords(m.snap.Down, m.snap.Silent)
	if words == "" {
		return nil
	}
	at := m.snap.Down.Local().Format("15:04:05")
	return []string{words + ", facts are of then", words, "? as of " + at, "? " + at}
}

// saidFrom is the number of rows from which what is said has a line of its own above the keys.
const saidFrom = 10

// said returns the result of the last key or, without one, the receipt of the last sent message.
func (m *model) said() string {
	switch {
	case m.toast != "" && m.bad:
		return " " + m.style.Red(view.Clean(m.toast))
	case m.toast != "":
		return " " + view.Clean(m.toast)
	case m.over.kind == noOverlay || m.over.kind == filterOverlay:
		if line := m.receiptLine(); line != "" {
			return " " + line
		}
	}
	return ""
}

// others adds to the title of the only list that is shown how to get to the others, and to the views.
func (m *model) others(s group) group {
	var names []string
	from := m.groupAt()
	for n := 1; n < len(m.sections); n++ {
		if i := (from + n) % len(m.sections); len(m.sections[i].items) > 0 {
			names = append(names, m.sections[i].id)
		}
	}
	hints := []string{m.viewKeys()}
	if len(names) > 0 {
		hints = []string{m.keys.hint("next-list", strings.Join(names, ", ")), m.viewKeys()}
	}
	gap := "   "
	for _, h := range hints {
		if longer := s.title + gap + h; h != "" && view.Width(longer) < m.cols {
			s.title, gap = longer, "  "
		}
	}
	return s
}

// list draws a group in height lines: its title and the rows around the selected one.
func (m *model) list(f *frame, s group, left, width, height int) []string {
	if height <= 0 || width <= 0 {
		return nil
	}
	out := []string{}
	title := " " + s.head(width-1)
	if s.id == "needs" && len(s.items) > 0 {
		title = " " + m.style.Yellow(s.head(width-1))
	} else {
		title = m.style.Dim(title)
	}
	if height > 1 || len(s.items) == 0 {
		out = append(out, title)
	}
	if len(s.items) == 0 {
		for _, l := range s.noteLines(width)[:min(height-1, len(s.noteLines(width)))] {
			out = append(out, view.Pad("   "+l, width))
		}
	}
	room := height - len(out)
	at := -1
	for i, it := range s.items {
		if it.id == m.cursor {
			at = i
		}
	}
	var more []string
	if at >= 0 && s.items[at].more != nil && room > 1 {
		more = s.items[at].more(width - 2)
		more = more[:min(len(more), room-1)]
	}
	rows := room - len(more)
	base := len(f.lines)
	top := clamp(m.top[s.id], 0, max(0, len(s.items)-rows))
	if at >= 0 {
		if m.stays.on == m.selection() && (m.at == inTeam || m.at == inNeeds || m.at == inTasks) {
			top = clamp(at-(m.stays.y-base-len(out)), 0, at)
		}
		top = max(0, clamp(top, at-rows+1, at))
		m.stays.on, m.stays.y = m.selection(), base+len(out)+at-top
		if top == at && at > 0 && len(out) > 0 { // no row above it is left for the sign
			out[0] += m.style.Dim(fmt.Sprintf("  ↑ %d above", at))
		}
	}
	m.top[s.id] = max(0, top)
	for i := max(0, top); i < len(s.items) && len(out) < height; i++ {
		it := s.items[i]
		mark := "  "
		if i == at {
			mark = m.style.Bold("›") + " "
		}
		line := it.line(max(0, width-3))
		switch {
		case it.gone:
			line = m.style.Dim(view.Cut("gone: "+strip(it.line(max(0, width-9))), width-3))
		case i == at:
			line = m.style.boldText(line)
		}
		f.regions = append(f.regions, region{y: base + len(out), left: left, right: left + width, id: it.id})
		if i == max(0, top) && top > 0 && i != at {
			mark = "↑ "
		}
		if len(out) == height-1 && i < len(s.items)-1 && i != at {
			mark = "↓ "
		}
		out = append(out, view.Pad(" "+mark+line, width))
		if i == at {
			for _, l := range more {
				out = append(out, view.Pad("   "+l, width))
			}
		}
	}
	return out
}

// drawHome draws the team on a large screen: needs at the top, lists on the left, the selected
// item on the right. A single member has a line instead of a list, and its screen is always there.
func (m *model) drawHome(f *frame, room int) {
	if len(m.sections) < 3 {
		return
	}
	needs := m.sections[0]
	n := min(len(needs.items)+1, max(2, room/3))
	base := len(f.lines)
	f.add(m.list(f, needs, 0, m.cols, n)...)
	room -= len(f.lines) - base
	left := clamp(m.cols*46/100, 44, 72)
	if it, ok := m.sole(); ok {
		m.soleLine(f, it)
		room--
		m.beside(f, left, room, func(f *frame, left int) []string { return m.list(f, m.sections[2], 0, left, room) })
		return
	}
	members := min(len(m.sections[1].items)+1, max(2, room*55/100))
	if rest := len(m.sections[2].items) + 1; members+rest < room {
		members = min(len(m.sections[1].items)+1, room-rest)
	}
	m.beside(f, left, room, func(f *frame, left int) (column []string) {
		base := len(f.lines)
		for i, h := range []int{members, room} {
			g := frame{lines: make([]string, base+len(column))}
			column = append(column, m.list(&g, m.sections[i+1], 0, left, min(h, room-len(column)))...)
			f.regions = append(f.regions, g.regions...)
		}
		return column
	})
}

// drawNarrow draws the team in one column.
func (m *model) drawNarrow(f *frame, room int) {
	shown := m.visible()
	if len(shown) < 2 {
		return
	}
	needs := shown[0]
	n := min(len(needs.items)+1, max(2, room/2))
	base := len(f.lines)
	f.add(m.list(f, needs, 0, m.cols, n)...)
	rest := room - (len(f.lines) - base)
	if it, ok := m.row(); ok && it.on.Need != nil && rest >= 8 {
		d := m.detail(f, m.cols-3, rest)
		if len(d) <= rest-4 { // the request fits above the list
			for _, l := range d {
				f.add("   " + l)
			}
			rest -= len(d)
		} else {
			f.seen = map[int64]string{}
		}
	}
	f.add(m.list(f, m.others(shown[1]), 0, m.cols, rest)...)
}

// drawSmall draws the team on a screen with room for one list.
func (m *model) drawSmall(f *frame, room int) {
	shown := m.visible()
	if len(shown) == 0 {
		return
	}
	tail := ""
	if c := m.snap.Count(); m.cols < 40 && room >= 3 && c.Total > 0 {
		g := view.GlanceOf(m.snap)
		g.Needs, g.Team = 0, ""
		tail = g.String()
		room--
	}
	if shown[0].id == "needs" && len(shown[0].items) > 0 { // the header has their number
		f.add(m.untitled(f, shown[0], room)...)
	} else {
		f.add(m.list(f, m.others(shown[0]), 0, m.cols, room)...)
	}
	if tail != "" {
		for len(f.lines) < room+1 {
			f.add("")
		}
		f.add(tail)
	}
}

func (m *model) untitled(f *frame, s group, room int) []string {
	g := frame{lines: make([]string, max(0, len(f.lines)-1))}
	out := m.list(&g, s, 0, m.cols, room+1)
	f.regions = append(f.regions, g.regions...)
	if len(out) > 0 && room+1 > 1 {
		out = out[1:]
	}
	return out
}

// mailBeside is the width from which a message is shown beside the list, which needs the room.
const mailBeside = 160

// drawPlace draws a place with its lists, and the selected item beside or below them.
func (m *model) drawPlace(f *frame, room int) {
	if len(m.sections) == 0 {
		f.add(m.emptyLines()...)
		return
	}
	total := 0
	for _, s := range m.sections {
		total += s.height(m.cols)
	}
	height, width := room, m.cols
	if m.at == inChanges && m.diff.in && (m.cols < 110 || room < 6) {
		for _, l := range m.detail(f, m.cols-2, room) {
			f.add(" " + l)
		}
		return
	}
	beside := m.cols >= 110 && m.at != inTeams && m.at != inUsage && (m.at != inMail || m.cols >= mailBeside)
	below := !beside && room >= 14 && m.at != inTeams && m.at != inUsage
	switch {
	case beside:
		width = clamp(m.cols*40/100, 44, 84)
		if m.at == inChanges && m.sides() {
			width = 44 // the diff needs the room
		}
	case below:
		height = clamp(total, 3, room/2)
	}
	base := len(f.lines)
	lists := func(f *frame, width int) (column []string) {
		left := height
		for i, s := range m.sections {
			h := min(s.height(width), max(2, left-2*(len(m.sections)-1-i)))
			if i == len(m.sections)-1 {
				h = left
			}
			g := frame{lines: make([]string, base+len(column))}
			lines := m.list(&g, s, 0, width, min(h, left))
			column = append(column, lines...)
			f.regions = append(f.regions, g.regions...)
			if left -= len(lines); left <= 0 {
				break
			}
		}
		return column
	}
	if beside {
		m.beside(f, width, room, lists)
		return
	}
	f.add(lists(f, width)...)
	if below {
		for len(f.lines) < base+height {
			f.add("")
		}
		for _, l := range m.detail(f, m.cols-2, room-height) {
			f.add(" " + l)
		}
	}
}

func (m *model) emptyLines() []string {
	switch {
	case m.at == inTeams && m.teamsLost != "":
		return wrapped(" the teams cannot be read: "+view.Clean(m.teamsLost), m.cols-1)
	case m.at == inTeams && !m.begins.known:
		return []string{" reading the teams"}
	case m.at == inTeams:
		return []string{" there is no team yet; looking at this machine"}
	}
	return []string{" nothing is here"}
}

// drawScreen draws the screen of a member, as large as possible.
func (m *model) drawScreen(f *frame, room int) {
	lines := m.screenLines(m.cols-1, room-1)
	f.add(view.Cut(m.style.Dim(" "+view.Clean(m.screenOf)+"  screen")+m.screenState(), m.cols))
	for _, l := range lines {
		mark := " "
		if m.filter != "" && view.Matches(strip(l), m.filter) {
			mark = m.style.Bold("›")
		}
		f.add(mark + l)
	}
}

// screenState says how old the picture of a member's screen is: it is live only while it is followed
// and the supervisor answers.
func (m *model) screenState() string {
	switch {
	case !m.asOf().IsZero():
		return m.style.Yellow("  ? as of " + m.asOf().Local().Format("15:04:05"))
	case m.back != nil && m.back.reading:
		return m.style.Dim(", reading its history")
	case m.back != nil:
		return m.style.Yellow(fmt.Sprintf(", history, %d lines below", m.scroll))
	case m.screen.Ended != "":
		return ""
	case m.screen.At.IsZero():
		return m.style.Dim(", reading it")
	}
	return m.style.Dim(", live")
}

// screenLines returns the last lines of a member's screen, moved up by the scroll position.
func (m *model) screenLines(width, height int) []string {
	lines := m.screenPart(height)
	out := make([]string, 0, len(lines)+1)
	for _, l := range lines {
		if l = view.Colors(l); !m.style.On {
			l = strip(l)
		} else if strings.Contains(l, "\x1b") {
			l += "\x1b[0m" // what is beside it has its own
		}
		out = append(out, view.Cut(l, width))
	}
	if m.screen.Ended != "" {
		out = append(out[max(0, len(out)-height+1):], m.style.Dim(view.Cut(view.Clean(m.screen.Ended), width)))
	}
	return out
}

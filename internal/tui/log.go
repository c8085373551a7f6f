package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// logAgain is the shortest time between two reads of the log of an attempt that is in work.
const logAgain = time.Second

// logged is the log of an attempt on the screen.
type logged struct {
	task    string
	attempt int // 0: the newest
	from    place
	merge   int64 // whose gates it is of, 0 for a task
	title   string
	stop    context.CancelFunc // of what follows it, nil if nothing does
	row     string             // that was selected there
	have    bool
	why     string // why it could not be read
	log     view.TaskLog
	readAt  time.Time

	width int // of lines
	lines []string
}

// openLog shows the log of the newest attempt at a task.
func (r *run) openLog(task string) {
	m := r.m
	from, row := m.at, m.cursor
	if from == inLog || from == inScreen && m.screenFrom == inLog {
		from, row = m.logged.from, m.logged.row
	}
	r.stopGateLog()
	m.logged = logged{task: task, from: from, row: row}
	r.goTo(inLog)
}

// openGateLog shows what the gates of a merge have printed, from its end, and follows it while the merge
// is in progress.
func (r *run) openGateLog(x view.Merge) {
	m := r.m
	m.logged = logged{merge: x.ID, from: m.at, row: m.cursor}
	r.goTo(inLog)
}

// followGate follows the log of a gate that is shown, unless the merge has ended.
func (r *run) followGate() {
	m, t := r.m, r.team
	id := m.logged.merge
	if m.logged.stop != nil || m.logged.have && !m.logged.log.To.IsZero() {
		return
	}
	ctx, cancel := context.WithCancel(r.teamCtx)
	m.logged.stop = cancel
	r.all.Go(func() {
		defer r.caught()
		show := func(change func(*model)) {
			select {
			case r.changes <- func(m *model) {
				if ctx.Err() == nil {
					change(m)
				}
			}:
			case <-ctx.Done():
			}
		}
		err := t.GateLog(ctx, id, func(x view.Merge, p view.LogPart) { show(func(m *model) { m.setGateLog(x, p) }) })
		if err != nil {
			show(func(m *model) { m.setLog(m.logged.log, err) })
		}
	})
}

// setGateLog shows what a gate has printed. A log that is read at its end stays there.
func (m *model) setGateLog(x view.Merge, p view.LogPart) {
	l := &m.logged
	atEnd := !l.have || m.scroll >= len(l.lines)-m.textRoom()
	l.title = x.Title()
	m.setLog(view.TaskLog{From: x.Asked, To: x.Ended, Parts: []view.LogPart{p}}, nil)
	if atEnd {
		m.scroll = 1 << 30
	}
}

// stopGateLog ends following a gate.
func (r *run) stopGateLog() {
	if stop := r.m.logged.stop; stop != nil {
		stop()
		r.m.logged.stop = nil
	}
}

// taskInHand returns the task of the selected row, or the one that its member works on.
func (m *model) taskInHand() string {
	it, ok := m.row()
	switch {
	case !ok || it.gone:
	case it.on.Task != nil:
		return it.on.Task.ID
	case it.on.Need != nil:
		return it.on.Need.Task
	}
	return ""
}

// readLog reads the log that is shown. One that cannot change any more is read once.
func (r *run) readLog() {
	t, m := r.team, r.m
	l := &m.logged
	if t == nil || l.merge != 0 || l.have && l.why == "" && (!l.log.To.IsZero() || m.now.Sub(l.readAt) < logAgain) {
		return
	}
	id, attempt := l.task, l.attempt
	r.read("log", func(ctx context.Context) func(*model) {
		x, err := t.TaskLog(ctx, id, attempt)
		return func(m *model) {
			if m.logged.task == id && m.logged.attempt == attempt {
				m.setLog(x, err)
			}
		}
	})
}

func (m *model) setLog(x view.TaskLog, err error) {
	l := &m.logged
	l.have, l.readAt, l.why, l.lines = true, m.now, "", nil
	if err != nil {
		l.why = err.Error()
		return
	}
	l.log = x
}

// inLog is a command in the log of an attempt; false where it is the same as elsewhere.
func (r *run) inLog(id string) bool {
	m := r.m
	switch id {
	case "next-list", "previous-list":
		step := map[string]int{"next-list": 1, "previous-list": -1}[id]
		if to := m.logged.log.Other(step); to != m.logged.log.Attempt {
			m.logged = logged{task: m.logged.task, attempt: to, from: m.logged.from, row: m.logged.row}
			m.scroll = 0
			r.readLog()
		}
	case "open":
	case "back":
		if m.filter != "" {
			m.filter = ""
			return true
		}
		row := m.logged.row
		r.goTo(m.logged.from)
		m.choose(row)
	default:
		return false
	}
	return true
}

// logLines returns the log, wrapped to a width. It keeps them, since wrapping a long log takes
// longer than drawing it.
func (m *model) logLines(width int) []string {
	l := &m.logged
	if l.lines != nil && l.width == width {
		return l.lines
	}
	lines := []string{}
	head := func(title string) {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, m.style.Dim(title))
	}
	if l.why != "" {
		lines = append(lines, wrapped(m.style.Red(plain.Visible(l.why)), width)...)
	}
	for _, p := range l.log.Parts {
		head(p.Title)
		if p.Cut {
			lines = append(lines, m.style.Dim("earlier lines are left out"))
		}
		for _, text := range p.Lines {
			lines = append(lines, wrapped(shown(text), width)...)
		}
		switch {
		case p.Missing != "":
			lines = append(lines, wrapped(m.style.Dim(plain.Visible(p.Missing)), width)...)
		case len(p.Lines) == 0:
			lines = append(lines, m.style.Dim("nothing"))
		}
	}
	if len(l.log.Events) > 0 {
		head("WHAT HAPPENED")
		lines = append(lines, m.eventLines(l.log.Events, width)...)
	}
	l.width, l.lines = width, lines
	return lines
}

// drawLog draws the log of an attempt: what is known of it, and its output.
func (m *model) drawLog(f *frame, room int) {
	l := &m.logged
	if !l.have {
		f.add(" reading the log")
		return
	}
	title := l.log.Title(m.now)
	if l.merge != 0 {
		title = l.title
	} else if l.log.Attempt == 0 && l.why != "" {
		title = "task " + view.Clean(l.task)
	}
	f.add(" " + m.style.Bold(view.Cut(title, m.cols-1)))
	m.drawText(f, m.logLines(max(1, m.cols-2)), room-1)
}

// drawText draws a part of a text, with a mark before the lines that have the words of the search.
func (m *model) drawText(f *frame, lines []string, height int) {
	m.scroll = clamp(m.scroll, 0, max(0, len(lines)-height))
	for _, l := range lines[m.scroll:min(len(lines), m.scroll+max(0, height))] {
		if m.filter != "" && view.Matches(strip(l), m.filter) {
			f.add(m.style.Bold("›" + l))
		} else {
			f.add(" " + l)
		}
	}
}

// inText reports whether the place is one text.
func (m *model) inText() bool { return m.at == inLog || m.at == inScreen || m.at == inPager }

// text returns the lines of a place that is one text, nil elsewhere.
func (m *model) text() []string {
	switch m.at {
	case inLog:
		return m.logLines(max(1, m.cols-2))
	case inPager:
		return m.pagerLines()
	case inScreen:
		return m.screenText()
	default:
	}
	return nil
}

// seek scrolls a text to the next line that contains the searched words (step 1), or to the previous
// one (step -1). With step 0 it does not scroll if the first visible line contains them.
func (m *model) seek(step int) {
	lines, room := m.text(), m.textRoom()
	if m.filter == "" || len(lines) == 0 {
		return
	}
	top := m.scroll
	if m.at == inScreen { // it counts from the end
		top = len(lines) - m.scroll - room
	}
	last := max(0, len(lines)-room)
	hit := func(i int) bool { return view.Matches(strip(lines[i]), m.filter) }
	at := clamp(top, 0, last)
	from := at + step
	if step > 0 && at == last { // what follows is in sight: it goes on at the top
		from = 0
	} else if step < 0 && at == 0 {
		from = len(lines) - 1
	}
	way := step
	switch {
	case step != 0:
	case m.at == inScreen && !slices.ContainsFunc(lines[at:min(len(lines), at+room)], func(l string) bool { return view.Matches(strip(l), m.filter) }):
		way = -1 // the newest one is of interest
	default:
		way = 1
	}
	for n := range lines {
		i := ((from+way*n)%len(lines) + len(lines)) % len(lines)
		if !hit(i) {
			continue
		}
		if m.at == inScreen {
			m.scroll = max(0, len(lines)-i-room)
		} else {
			m.scroll = i
		}
		return
	}
	m.say("nothing has "+view.Clean(m.filter), true)
}

// inText is a command in a place that is one text.
func (r *run) inText(id string) bool {
	m := r.m
	switch {
	case id == "next-change":
		r.seek(1)
	case id == "previous-change":
		r.seek(-1)
	case id == "top" && m.at == inScreen:
		r.scrollScreen(-1 << 30)
	case id == "bottom" && m.at == inScreen:
		m.live()
	case id == "top":
		m.scroll = 0
	case id == "bottom":
		m.scroll = 1 << 30
	default:
		return false
	}
	return true
}

// logRows has the task or the merge of the log as its only row, which is not drawn: actions are about it.
func (m *model) logRows() []group {
	if id := m.logged.merge; id != 0 {
		g := m.mergeRows()
		g.items = slices.DeleteFunc(g.items, func(it item) bool { return it.on.Merge.ID != id })
		return []group{g}
	}
	t := m.taskOf(m.logged.task)
	if t == nil {
		return nil
	}
	return []group{{id: "log", items: []item{m.taskItem(*t, 1, 0)}}}
}

// logKey names the key that opens the log of a row's task.
func (m *model) logKey(it item) string {
	if m.at == inTasks || it.on.Need != nil {
		return m.keys.hint("open", "log")
	}
	return m.keys.hint("log", "log")
}

// screenKeys are the keys of a member's screen that are commands of the screen.
func (m *model) screenKeys() []string {
	keys := []string{m.keys.hint("back", "back"), m.keys.hint("filter", "search")}
	if m.filter != "" {
		keys = append(keys, m.keys.hint("next-change", "next"))
	}
	if m.back != nil {
		return append(keys, m.keys.hint("bottom", "live"))
	}
	return append(keys, m.keys.hint("scroll-up", "history"))
}

// logKeys are the keys of a log that are commands of the screen.
func (m *model) logKeys() []string {
	keys := []string{m.keys.hint("back", "back"), m.keys.hint("filter", "search")}
	if m.filter != "" {
		keys = append(keys, m.keys.hint("next-change", "next"))
	}
	if n := m.logged.log.Attempts; len(n) > 1 {
		keys = append(keys, m.keys.hint("next-list", "other attempts"))
	}
	return keys
}

// plainLog returns the lines of a log for the plain screen.
func plainLog(l view.TaskLog, now time.Time) []string {
	out := []string{l.Title(now) + "."}
	for _, p := range l.Parts {
		out = append(out, plainPart(p)...)
	}
	return out
}

func plainPart(p view.LogPart) (out []string) {
	title := strings.ToLower(p.Title)
	if p.Missing != "" {
		out = append(out, title+": "+p.Missing)
	}
	lines := p.Lines[max(0, len(p.Lines)-plainLogLines):]
	if left := len(p.Lines) - len(lines); left > 0 || p.Cut {
		title += ", its last lines"
	}
	for _, text := range slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.TrimSpace(s) == "" }) {
		out = append(out, title+": "+strings.TrimSpace(text))
	}
	return out
}

// plainLogLines is how many lines of an output the plain screen reads out.
const plainLogLines = 40

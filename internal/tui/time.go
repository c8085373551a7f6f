package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// shortest is the shortest time that the lanes show.
const shortest = 10 * time.Second

// past is the timeline and the log on the screen.
type past struct {
	have  bool
	whole view.Timeline // as read
	span  time.Duration // shown, 0 for all
	until time.Time     // end of what is shown; zero: now, which it follows
	log   []view.Event
	// logKind and logAll are the kind and all that log was read with.
	logKind string
	logAll  bool
	kind    string // of the log, one of view.LogKinds
	all     bool   // events without a sentence, too

	readAt time.Time
	took   time.Duration // by the last read
	stale  bool          // something has happened since
}

// window returns the part of the timeline that is shown.
func (m *model) window() view.Timeline {
	now := m.now
	if m.problem != "" { // nothing is known of what happened since
		now = m.problemAt
	}
	t := m.past.whole.Until(now)
	span := t.To.Sub(t.From)
	if m.past.span > 0 && m.past.span < span {
		span = m.past.span
	}
	if u := m.past.until; !u.IsZero() && u.Before(t.To) {
		t.To = u
	}
	if from := t.To.Add(-span); from.After(t.From) {
		t.From = from
	} else if t.From.Add(span).Before(m.past.whole.Until(now).To) {
		t.To = t.From.Add(span)
	}
	return t
}

// pan moves the shown period by a quarter of its length. At the latest time it follows new events
// again.
func (m *model) pan(step int) {
	w := m.window()
	span := w.To.Sub(w.From)
	to := w.To.Add(time.Duration(step) * max(span/4, time.Second))
	if first := m.past.whole.From.Add(span); to.Before(first) {
		to = first
	}
	m.past.until = to
	if !to.Before(m.past.whole.Until(m.now).To) {
		m.past.until = time.Time{}
	}
}

// zoom halves or doubles the time that is shown, around its middle, or at its end while it follows.
func (m *model) zoom(in bool) {
	w := m.window()
	span, whole := w.To.Sub(w.From), m.past.whole.Until(m.now)
	next := span * 2
	if in {
		next = max(span/2, shortest)
	}
	if !m.past.until.IsZero() {
		m.past.until = w.From.Add(span/2 + next/2)
	}
	if m.past.span = next; next >= whole.To.Sub(whole.From) {
		m.past.span, m.past.until = 0, time.Time{}
	}
}

// inTime is a command among lanes and log; false where it is the same as elsewhere.
func (r *run) inTime(id, key string) bool {
	m := r.m
	p := &m.past
	switch id {
	case "next-list", "previous-list":
		step, ok := map[string]int{"l": 1, "right": 1, "h": -1, "left": -1}[key]
		if !ok {
			return false
		}
		m.pan(step)
	case "zoom-in", "zoom-out":
		m.zoom(id == "zoom-in")
	case "follow":
		if p.until.IsZero() {
			p.until = m.window().To
			m.say("it stays at "+p.until.Local().Format("15:04:05"), false)
		} else {
			p.until = time.Time{}
		}
	case "turn":
		all := view.LogKinds()
		p.kind = all[(max(0, slices.Index(all, p.kind))+1)%len(all)]
		r.readTime(true)
	case "noise":
		p.all = !p.all
		r.readTime(true)
	default:
		return false
	}
	return true
}

// readTime reads timeline and log if something has happened. Reading takes a tenth of the time at
// most, since a long history takes long.
func (r *run) readTime(now bool) {
	t, m := r.team, r.m
	if t == nil {
		return
	}
	p := &m.past
	p.stale = true
	if !now && p.have && m.now.Sub(p.readAt) < 10*p.took {
		return
	}
	p.stale = false
	kind, all := p.kind, p.all
	r.read("time", func(ctx context.Context) func(*model) {
		began := time.Now()
		l, err := t.Timeline(ctx)
		if err != nil {
			return func(m *model) { m.fail("", err, "") }
		}
		log, err := t.Log(ctx, kind, all)
		if err != nil {
			return func(m *model) { m.fail("", err, "") }
		}
		took := time.Since(began)
		return func(m *model) {
			p := &m.past
			p.whole, p.have, p.readAt, p.took = l, true, m.now, took
			if p.kind == kind && p.all == all {
				p.log, p.logKind, p.logAll = log, kind, all
			}
		}
	})
}

// timeDue returns the time until the lanes change without an event, 0 for never.
func (m *model) timeDue() time.Duration {
	p := &m.past
	if !p.have {
		return 0
	}
	d := time.Duration(0)
	if p.until.IsZero() && m.problem == "" { // when the newest column is full
		w := m.window()
		d = clampDuration(w.To.Sub(w.From)/time.Duration(max(1, m.laneColumns())), time.Second, time.Minute)
	}
	if again := p.readAt.Add(10 * p.took).Sub(m.now); p.stale && (d == 0 || again < d) {
		d = max(again, time.Millisecond)
	}
	return d
}

func clampDuration(d, low, high time.Duration) time.Duration { return max(low, min(d, high)) }

// laneWidths returns the widths of what stands beside a lane.
func (m *model) laneWidths() (name, note int) {
	name = 4
	for _, l := range m.past.whole.Lanes {
		name = max(name, widest(16, view.Clean(l.Member)))
	}
	switch {
	case m.cols >= 100:
		note = 34
	case m.cols < 40:
		name = min(name, m.cols/3)
	}
	return name, note
}

// laneColumns returns how many columns a lane has.
func (m *model) laneColumns() int {
	name, note := m.laneWidths()
	if note > 0 {
		note += 2
	}
	return max(1, m.cols-3-name-2-note)
}

// timeRows returns the lanes, and the log with the newest event first.
func (m *model) timeRows() []group {
	if !m.past.have {
		return nil
	}
	w := m.window()
	name, note := m.laneWidths()
	columns := m.laneColumns()
	lanes := group{id: "lanes", title: w.Title(columns)}
	if !m.past.until.IsZero() {
		lanes.title += ", f follows"
	}
	d := view.Drawing{ASCII: m.ascii, Paint: m.style.Lane}
	for _, l := range w.Lanes {
		on := view.Target{Thing: view.OnTeam}
		if x := m.memberOf(l.Member); x != nil {
			on = view.Target{Thing: view.OnMember, Member: x}
			if t, ok := m.snap.TaskOf(x.Name); ok {
				on.Task = &t
			}
		}
		lanes.items = append(lanes.items, item{id: "lane:" + l.Member, on: on, text: l.Member + " " + l.Note(w.To) + m.memberWords(l.Member), line: func(int) string {
			line := view.Pad(view.Clean(l.Member), name) + "  " + w.Row(l, d, columns)
			if note > 0 {
				line += "  " + view.Cut(l.Note(w.To), note)
			}
			return line
		}})
	}
	log := group{id: "log", title: "LOG"}
	if m.past.kind != "" && m.past.kind != view.LogKinds()[0] {
		log.title += " of " + m.past.kind
	}
	if m.past.all {
		log.title += ", protocol too"
	}
	seen := map[string]int{}
	for _, e := range slices.Backward(m.past.log) {
		id := fmt.Sprintf("event:%d:%s:%s", e.At.UnixMilli(), e.What, e.ID)
		seen[id]++
		if n := seen[id]; n > 1 {
			id += fmt.Sprint(":", n)
		}
		on := view.Target{Thing: view.OnTeam}
		if t := m.taskOf(e.ID); t != nil && view.InLog("tasks", e.What) {
			on = view.Target{Thing: view.OnTask, Task: t, Member: m.memberOf(t.Owner)}
		} else if x := m.memberOf(e.ID); x != nil && view.InLog("members", e.What) {
			on = view.Target{Thing: view.OnMember, Member: x}
		}
		log.items = append(log.items, item{id: id, on: on, text: e.Text, line: func(w int) string {
			at, layout := e.At.Local(), "15:04:05"
			if m.now.Sub(e.At) > 20*time.Hour {
				layout = "01-02 15:04"
			}
			return view.Cut(m.style.Dim(at.Format(layout))+"  "+view.Clean(e.Text), w)
		}})
	}
	return []group{lanes, log}
}

// drawTime draws the lanes above the log; where there is little room only the list with the cursor.
func (m *model) drawTime(f *frame, room int) {
	if len(m.sections) < 2 {
		f.add(" reading the history")
		return
	}
	lanes, log := m.sections[0], m.sections[1]
	if room < 8 {
		f.add(m.list(f, m.sections[m.groupAt()], 0, m.cols, room)...)
		return
	}
	if room >= 12 {
		d := view.Drawing{ASCII: m.ascii}
		f.add(m.style.Dim(view.Cut(" "+d.Legend(), m.cols)))
		room--
	}
	n := min(len(lanes.items)+1, max(2, room*3/5))
	if rest := len(log.items) + 1; n+rest < room {
		n = min(len(lanes.items)+1, room-rest)
	}
	f.add(m.list(f, lanes, 0, m.cols, n)...)
	f.add(m.list(f, log, 0, m.cols, room-n)...)
}

// timeKeys are the keys of lanes and log that are commands of the screen.
func (m *model) timeKeys() []string {
	k := m.keys
	keys := []string{strings.TrimSpace(k.first("zoom-in") + " " + k.hint("zoom-out", "zoom")), "h l move"}
	if !m.past.until.IsZero() {
		keys = append(keys, k.hint("follow", "follow"))
	}
	return append(keys, k.hint("turn", "kind"), k.hint("noise", "protocol"))
}

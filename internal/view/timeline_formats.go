package view

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"
)

// Dimensions of a Timeline's picture, in its units.
const (
	timeWidth = 1000 // of the lanes
	timeName  = 130
	timeLane  = 24 // of the states of a lane
	timeTrack = 20 // of a row of its tasks
	timeHead  = 56
)

// SVG returns the timeline as a self-contained picture: for each lane its states, and below them
// its tasks. Everything has a title, and states have patterns in addition to their colours.
func (t Timeline) SVG() string {
	width, height := timeName+timeWidth+2*svgMargin, timeHead+svgMargin
	for _, l := range t.Lanes {
		_, n := l.tracks()
		height += timeLane + n*timeTrack
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="ui-monospace, monospace" font-size="12" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString("Timeline of "+Clean(t.Team)+", "+t.From.Format("2006-01-02 15:04")+" to "+t.To.Format("2006-01-02 15:04")))
	b.WriteString("<style>text{fill:#111}.grid{stroke:#e5e7eb}.task{fill:#fff;stroke:#6b7280}.failed{stroke:#b91c1c;stroke-width:2}.completed{stroke:#1e7e34}")
	for _, s := range laneStates {
		fmt.Fprintf(&b, ".s-%s{fill:%s}", s.state, s.color)
	}
	b.WriteString("</style>\n<defs>")
	for _, s := range laneStates {
		fmt.Fprintf(&b, `<pattern id="p-%s" width="8" height="14" patternUnits="userSpaceOnUse"><rect class="s-%s" width="8" height="14"/>%s</pattern>`,
			s.state, s.state, patterns[s.state])
	}
	b.WriteString("</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")
	x := float64(svgMargin)
	for _, s := range laneStates {
		fmt.Fprintf(&b, `<rect fill="url(#p-%s)" x="%.1f" y="8" width="16" height="14" stroke="#6b7280"/><text x="%.1f" y="20">%s</text>`+"\n", s.state, x, x+22, s.state)
		x += 46 + svgChar*float64(len(s.state))
	}
	whole := max(t.To.Sub(t.From), 1)
	at := func(x time.Time) float64 {
		return svgMargin + timeName + timeWidth*float64(x.Sub(t.From))/float64(whole)
	}
	for _, tick := range ticks(t.From, t.To) {
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text x="%.1f" y="%d">%s</text>`+"\n",
			at(tick.at), at(tick.at), timeHead-8, height, at(tick.at)+3, timeHead-10, tick.text)
	}
	top := timeHead
	for _, l := range t.Lanes {
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", svgMargin, top+13, html.EscapeString(Cut(Clean(l.Member), laneName)))
		for _, s := range l.Spans {
			fmt.Fprintf(&b, `<rect fill="url(#p-%s)" x="%.1f" y="%d" width="%.1f" height="14"><title>%s</title></rect>`+"\n",
				s.State, at(s.From), top+2, max(at(s.To)-at(s.From), 0.5), html.EscapeString(s.words(l.Member)))
		}
		rows, n := l.tracks()
		for i, s := range l.Tasks {
			y := top + 19 + rows[i]*timeTrack
			left, wide := at(s.From), max(at(s.To)-at(s.From), 1)
			fmt.Fprintf(&b, `<g><title>%s</title><rect class="task %s" x="%.1f" y="%d" width="%.1f" height="16" rx="2"/>`,
				html.EscapeString(s.words()), strings.ReplaceAll(s.End, " ", "-"), left, y, wide)
			if label := Cut(Clean(s.Task+" "+s.Subject), int((wide-6)/svgChar)); label != "" {
				fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`, left+3, y+12, html.EscapeString(label))
			}
			b.WriteString("</g>\n")
		}
		top += timeLane + n*timeTrack
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// patterns are drawn over the colour of a state, which can then be recognised without it.
var patterns = map[LaneState]string{
	LaneWaiting: `<path d="M0 14L8 0" stroke="#fff"/>`,
	LaneLimited: `<path d="M0 3H8M0 10H8" stroke="#fff"/>`,
	LaneDown:    `<path d="M0 0L8 14M8 0L0 14" stroke="#b91c1c"/>`,
	LaneUnknown: `<circle cx="4" cy="7" r="1.5" fill="#6b7280"/>`,
}

func (s Span) words(member string) string {
	text := fmt.Sprintf("%s: %s, %s from %s", Clean(member), s.State, Duration(s.To.Sub(s.From)), s.From.Format("15:04:05"))
	if s.Why != "" {
		text += " (" + Clean(s.Why) + ")"
	}
	return text
}

func (s Stint) words() string {
	text := Clean("task " + s.Task + " " + s.Subject)
	if s.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", s.Attempt)
	}
	end := s.End
	if end == "" {
		end = "held"
	}
	return text + ": " + end + " after " + Duration(s.To.Sub(s.From))
}

type tick struct {
	at   time.Time
	text string
}

// ticks returns about ten round times at most.
func ticks(from, to time.Time) (out []tick) {
	whole := to.Sub(from)
	step := time.Second
	for _, s := range []time.Duration{
		time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour,
		12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour,
	} {
		if step = s; whole <= 10*s {
			break
		}
	}
	layout := "15:04"
	switch {
	case step < time.Minute:
		layout = "15:04:05"
	case step >= 12*time.Hour:
		layout = "01-02 15h"
	}
	for at := from.Truncate(step); !at.After(to) && len(out) < 40; at = at.Add(step) {
		if !at.Before(from) {
			out = append(out, tick{at, at.Format(layout)})
		}
	}
	return out
}

// traceEvent is an event of the Trace Event Format, which Perfetto reads: X is a span, M names a
// process or a thread. Times are in microseconds.
type traceEvent struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat,omitempty"`
	Ph   string         `json:"ph"`
	TS   int64          `json:"ts"`
	Dur  *int64         `json:"dur,omitempty"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	Args map[string]any `json:"args,omitempty"`
}

// Trace returns the timeline in the Trace Event Format: for each member a thread for its states
// and one for its tasks, or several if tasks overlap, since the spans of a thread must not.
func (t Timeline) Trace() ([]byte, error) {
	list := []traceEvent{{Name: "process_name", Ph: "M", PID: 1, Args: map[string]any{"name": "teamctl " + Clean(t.Team)}}}
	tid := 0
	thread := func(name string) int {
		tid++
		list = append(list, traceEvent{Name: "thread_name", Ph: "M", PID: 1, TID: tid, Args: map[string]any{"name": Clean(name)}},
			traceEvent{Name: "thread_sort_index", Ph: "M", PID: 1, TID: tid, Args: map[string]any{"sort_index": tid}})
		return tid
	}
	slice := func(tid int, cat, name string, from, to time.Time, args map[string]any) {
		dur := to.Sub(from).Microseconds()
		list = append(list, traceEvent{Clean(name), cat, "X", from.UnixMicro(), &dur, 1, tid, args})
	}
	for _, l := range t.Lanes {
		states := thread(l.Member)
		for _, s := range l.Spans {
			slice(states, "state", string(s.State), s.From, s.To, map[string]any{"why": Clean(s.Why)})
		}
		rows, n := l.tracks()
		first := tid + 1
		for range n {
			thread(l.Member + ", tasks")
		}
		for i, s := range l.Tasks {
			slice(first+rows[i], "task", s.Task+" "+s.Subject, s.From, s.To, map[string]any{"attempt": s.Attempt, "end": s.End})
		}
	}
	return json.MarshalIndent(map[string]any{"displayTimeUnit": "ms", "traceEvents": list}, "", " ")
}

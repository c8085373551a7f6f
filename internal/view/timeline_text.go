package view

import (
	"fmt"
	"strings"
	"time"
)

// Drawing configures a Timeline as text: its width in cells (at least 40), whether it is
// restricted to ASCII, and Paint, which colours each state, if set.
type Drawing struct {
	Cols  int
	ASCII bool
	Paint func(LaneState, string) string
}

const (
	laneName = 16 // maximum width of a name
	laneNote = 34 // width of the note at the end
)

// Text draws the lanes, one line each: a state in each column, and the number of a task where it
// begins.
func (t Timeline) Text(d Drawing) []string {
	failed := "✗"
	if d.ASCII {
		failed = "x"
	}
	paint := d.Paint
	if paint == nil {
		paint = func(_ LaneState, s string) string { return s }
	}
	wide := 4
	for _, l := range t.Lanes {
		wide = max(wide, min(laneName, Width(Clean(l.Member))))
	}
	note := laneNote
	if d.Cols < 80 {
		note = 0
	}
	columns := max(10, max(d.Cols, 40)-wide-note-5)
	step := t.To.Sub(t.From) / time.Duration(columns)
	title := "TIME"
	if t.Run != 0 {
		title = fmt.Sprintf("TIME of run %d", t.Run)
	}
	layout := "15:04"
	if t.To.Sub(t.From) > 24*time.Hour {
		layout = "01-02 15:04"
	}
	head := fmt.Sprintf(" %s, %s to %s, a column is %s", title, t.From.Format(layout), t.To.Format(layout), Duration(step))
	legend := []string{}
	for _, s := range laneStates {
		legend = append(legend, sign(s.state, d.ASCII)+" "+string(s.state))
	}
	lines := []string{Cut(head, max(d.Cols, 40)), Cut(" "+strings.Join(legend, "  ")+"  "+failed+" failed", max(d.Cols, 40))}
	for _, l := range t.Lanes {
		line := " " + Pad(Clean(l.Member), wide) + "  "
		for _, run := range runs(l.cells(t, columns, failed, d.ASCII)) {
			line += paint(run.state, run.text)
		}
		if note > 0 {
			line += "  " + Cut(l.Note(t.To), note)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if d.ASCII {
		for i, l := range lines {
			lines[i] = strings.ReplaceAll(l, "…", ".")
		}
	}
	return lines
}

func sign(s LaneState, ascii bool) string {
	for _, x := range laneStates {
		if x.state == s && ascii {
			return x.ascii
		} else if x.state == s {
			return x.sign
		}
	}
	return " "
}

type cell struct {
	state LaneState
	text  string
}

// cells returns the columns of a lane: the longest state in each, overlaid with the numbers of
// tasks and the failures.
func (l Lane) cells(t Timeline, columns int, failed string, ascii bool) []cell {
	out := make([]cell, columns)
	whole := t.To.Sub(t.From)
	if whole <= 0 {
		whole = 1
	}
	at := func(x time.Time) int {
		return min(columns-1, max(0, int(float64(x.Sub(t.From))/float64(whole)*float64(columns))))
	}
	edge := func(i int) time.Time {
		return t.From.Add(time.Duration(float64(whole) * float64(i) / float64(columns)))
	}
	most := make([]time.Duration, columns)
	for _, s := range l.Spans {
		for i := at(s.From); i <= at(s.To); i++ {
			if took := earlier(s.To, edge(i+1)).Sub(later(s.From, edge(i))); took > most[i] {
				most[i], out[i] = took, cell{s.State, sign(s.State, ascii)}
			}
		}
	}
	free := 0 // column after the last number
	for _, s := range l.Tasks {
		first, last := at(s.From), at(s.To)
		if id := Clean(s.Task); len(id) <= last-first && first >= free && Width(id) == len(id) {
			if len(id) < last-first && out[first].text != "" {
				first++
			}
			for j, c := range []byte(id) {
				out[first+j].text = string(c)
			}
			free = first + len(id)
		}
		if s.End == "failed" {
			out[last].text = failed
		}
	}
	for i := range out {
		if out[i].text == "" {
			out[i].text = " "
		}
	}
	return out
}

// runs joins adjacent cells of one state.
func runs(cells []cell) (out []cell) {
	for _, c := range cells {
		if n := len(out); n > 0 && out[n-1].state == c.state {
			out[n-1].text += c.text
		} else {
			out = append(out, c)
		}
	}
	return out
}

// Note returns the member's activity at the end of the lane, in words.
func (l Lane) Note(to time.Time) string {
	if len(l.Spans) == 0 {
		return ""
	}
	last := l.Spans[len(l.Spans)-1]
	if last.To.Before(to) {
		return "left " + last.To.Format("15:04")
	}
	age, why := Age(last.To.Sub(last.From)), Clean(last.Why)
	var words string
	switch last.State {
	case LaneWorking:
		words = "works " + age
		for _, s := range l.Tasks {
			if s.End == "" {
				why = "task " + Clean(s.Task)
			}
		}
	case LaneWaiting:
		words = "waits " + age
	case LaneLimited, LaneIdle, LaneDown:
		words = string(last.State) + " " + age
	case LaneUnknown:
		words = "not known " + age
	}
	if why != "" {
		words += ", " + why
	}
	return words
}

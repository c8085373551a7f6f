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

// failed is the sign of a task that has failed.
func (d Drawing) failed() string {
	if d.ASCII {
		return "x"
	}
	return "✗"
}

// Title returns what the lanes show, if they have so many columns.
func (t Timeline) Title(columns int) string {
	title := "TIME"
	if t.Run != 0 {
		title = fmt.Sprintf("TIME of run %d", t.Run)
	}
	layout := "15:04"
	switch whole := t.To.Sub(t.From); {
	case whole > 24*time.Hour:
		layout = "01-02 15:04"
	case whole < 10*time.Minute:
		layout = "15:04:05"
	}
	return fmt.Sprintf("%s, %s to %s, a column is %s", title, t.From.Format(layout), t.To.Format(layout), Duration(t.To.Sub(t.From)/time.Duration(max(1, columns))))
}

// Legend returns the signs of the states in words.
func (d Drawing) Legend() string {
	legend := []string{}
	for _, s := range laneStates {
		legend = append(legend, sign(s.state, d.ASCII)+" "+string(s.state))
	}
	return strings.Join(legend, "  ") + "  " + d.failed() + " failed"
}

// Row draws a lane: a state in each column, and the number of a task where it begins.
func (t Timeline) Row(l Lane, d Drawing, columns int) (line string) {
	for _, run := range runs(l.cells(t, max(1, columns), d.failed(), d.ASCII)) {
		if d.Paint != nil {
			run.text = d.Paint(run.state, run.text)
		}
		line += run.text
	}
	return line
}

// Text draws the lanes, one line each.
func (t Timeline) Text(d Drawing) []string {
	wide := 4
	for _, l := range t.Lanes {
		wide = max(wide, min(laneName, Width(Clean(l.Member))))
	}
	note := laneNote
	if d.Cols < 80 {
		note = 0
	}
	columns := max(10, max(d.Cols, 40)-wide-note-5)
	lines := []string{Cut(" "+t.Title(columns), max(d.Cols, 40)), Cut(" "+d.Legend(), max(d.Cols, 40))}
	for _, l := range t.Lanes {
		line := " " + Pad(Clean(l.Member), wide) + "  " + t.Row(l, d, columns)
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
		if !s.To.After(t.From) || !s.From.Before(t.To) {
			continue
		}
		for i := at(s.From); i <= at(s.To); i++ {
			if took := earlier(s.To, edge(i+1)).Sub(later(s.From, edge(i))); took > most[i] {
				most[i], out[i] = took, cell{s.State, sign(s.State, ascii)}
			}
		}
	}
	free := 0 // column after the last number
	for _, s := range l.Tasks {
		if s.To.Before(t.From) || s.From.After(t.To) {
			continue
		}
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
		if s.End == "failed" && !s.To.After(t.To) {
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

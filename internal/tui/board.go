package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// Board draws a team as lines of at most cols cells, to be printed once: header, what waits for a
// person, roster, tasks, newest events.
func Board(s view.Snapshot, cols int, now time.Time, style Style) []string {
	b := board{s: s, cols: max(cols, 1), now: now, style: style}
	lines := b.head()
	for _, p := range []section{
		{title: b.needTitle(), rows: b.needs()},
		{title: "MEMBERS", rows: b.members()},
		{title: "TASKS", rows: b.tasks()},
		{title: "EVENTS", rows: b.events()},
	} {
		if len(p.rows) > 0 {
			lines = append(append(lines, "", " "+style.Dim(p.title)), p.rows...)
		}
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(view.Cut(l, b.cols), " ")
	}
	return lines
}

type board struct {
	s     view.Snapshot
	cols  int
	now   time.Time
	style Style
}

// section is a part of the board.
type section struct {
	title string
	rows  []string
}

func (b board) head() []string {
	c := b.s.Count()
	left := " " + b.style.Bold(view.Clean(b.s.Team))
	if b.s.Repo != "" {
		left += "  " + b.style.Dim(view.Clean(b.s.Repo))
	}
	if n := len(view.Waiting(b.s.Needs)); n > 0 {
		left = " " + b.style.Yellow(fmt.Sprintf("!%d", n)) + left
	}
	counts := []string{"no tasks"}
	if c.Total > 0 {
		counts = []string{fmt.Sprintf("%d/%d done", c.Done, c.Total)}
		if c.Done < c.Total {
			counts = append(counts, countWords(c, b.style)...)
		}
	}
	right := strings.Join(counts, " · ") + " "
	gap := b.cols - view.Width(right)
	if gap >= view.Width(left)+2 {
		return []string{view.Pad(left, gap) + right}
	}
	for len(counts) > 1 && view.Width(strings.Join(counts, " · "))+1 > b.cols { // only whole words
		counts = counts[:len(counts)-1]
	}
	return []string{left, " " + strings.Join(counts, " · ")}
}

func (b board) needTitle() string {
	title := fmt.Sprintf("%d NEED YOU", len(view.Waiting(b.s.Needs)))
	if n := len(view.Off(b.s.Needs)); n > 0 {
		title += fmt.Sprintf(", %d put off", n)
	}
	return title
}

// needs returns the lines of what waits for a person: what, whose, since when, and the command to
// type.
func (b board) needs() []string {
	name, who, command := 6, 0, 0
	for _, n := range b.s.Needs {
		command = max(command, min(40, view.Width(view.Clean(n.Command))))
		name, who = max(name, view.Width(n.Name())), max(who, min(24, view.Width(view.Clean(n.Member))))
	}
	var out []string
	for _, n := range b.s.Needs {
		age := ""
		if !n.Since.IsZero() {
			age = view.Age(b.now.Sub(n.Since))
		}
		line := fmt.Sprintf("  %s %s  ", b.style.Yellow("!"), view.Pad(n.Name(), name))
		if who > 0 {
			line += view.Pad(view.Clean(n.Member), who) + "  "
		}
		tail := "  " + view.Pad(age, 4)
		if b.cols >= 100 {
			tail += "  " + b.style.Dim(view.Pad(view.Clean(n.Command), command))
		}
		room := b.cols - view.Width(line) - view.Width(tail)
		if room < 8 { // a narrow line shows who and what, and since when if it fits
			tail, room = "", b.cols-view.Width(line)
		}
		text := plain.Visible(strings.TrimSpace(n.Text))
		if n.Later {
			text = n.OffWords() + ": " + text
		}
		out = append(out, line+view.Pad(text, room)+tail)
	}
	return out
}

func (b board) members() []string {
	wide := b.widest(func(yield func(string)) {
		for _, m := range b.s.Members {
			yield(m.Name)
		}
	})
	doing := 8
	for _, m := range b.s.Members {
		if m.State == team.Running && !m.Lead {
			doing = max(doing, view.Width(m.Doing()))
		}
	}
	var out []string
	for _, m := range b.s.Members {
		if m.Lead {
			continue
		}
		dot := b.style.Dim("○")
		state := view.Pad(string(m.State), 9)
		if !b.s.Down.IsZero() && !m.State.Terminal() { // its state is unmaintained
			out = append(out, fmt.Sprintf("  %s %s  %s", b.style.Yellow("?"), b.style.Member(m.Color, view.Pad(view.Clean(m.Name), wide)),
				b.style.Dim(fmt.Sprintf("%s, %s at %s", m.State, m.Doing(), b.s.Down.Local().Format("15:04:05")))))
			continue
		}
		switch m.State {
		case team.Running:
			dot = b.style.Member(m.Color, "●")
		case team.Failed:
			state = b.style.Red(state)
		case team.Backoff, team.Starting:
			state = b.style.Yellow(state)
		default:
		}
		line := fmt.Sprintf("  %s %s  %s", dot, b.style.Member(m.Color, view.Pad(view.Clean(m.Name), wide)), state)
		if m.State == team.Running {
			line += "  " + view.Pad(m.Doing(), doing)
		} else {
			line += "  " + view.Pad("", doing)
		}
		if t, ok := b.s.TaskOf(m.Name); ok {
			line += fmt.Sprintf("  %s %s  %s", t.ID, view.Cut(view.Clean(t.Subject), 40), view.Elapsed(t.Took(b.now))) + b.dimmed(t.Note)
		} else if note := view.Clean(m.Note); note != "" && m.State != team.Running {
			line += "  " + b.style.Dim(note)
		}
		if !m.StalledSince.IsZero() {
			line += b.style.Yellow("  stalled " + view.Elapsed(b.now.Sub(m.StalledSince)))
		}
		if m.Restarts > 0 {
			line += b.style.Yellow(fmt.Sprintf("  %d restarts", m.Restarts))
		}
		out = append(out, line)
	}
	return out
}

func (b board) widest(each func(yield func(string))) int {
	wide := 6
	each(func(s string) { wide = max(wide, min(24, view.Width(view.Clean(s)))) })
	return wide
}

// rank orders tasks by their importance for a person.
func rank(t view.Task) int {
	switch {
	case t.Active():
		return 0
	case t.Status == team.TaskFailed:
		return 1
	case t.Stuck:
		return 3
	case t.Status == team.TaskPending:
		return 2
	}
	return 4
}

func (b board) tasks() []string {
	sorted := slices.Clone(b.s.Tasks)
	slices.SortStableFunc(sorted, func(x, y view.Task) int {
		if c := cmp.Compare(rank(x), rank(y)); c != 0 || rank(x) != 4 {
			return c
		}
		return y.Ended.Compare(x.Ended)
	})
	idWide, subject := 1, 10
	for _, t := range sorted {
		idWide = max(idWide, view.Width(t.ID))
		subject = max(subject, min(48, view.Width(view.Clean(t.Subject))))
	}
	subject = min(subject, max(10, b.cols-idWide-36))
	var out []string
	for _, t := range sorted {
		id := strings.Repeat(" ", max(0, idWide-view.Width(t.ID))) + t.ID
		line := fmt.Sprintf("%s %s  ", id, view.Pad(view.Clean(t.Subject), subject))
		switch {
		case t.Active():
			line = b.style.Cyan("▸") + " " + line + view.Pad(view.Clean(t.Owner), 14) + view.Elapsed(t.Took(b.now)) + b.dimmed(t.Note)
		case t.Status == team.TaskCompleted:
			line = b.style.Green("✓") + " " + line + view.Pad(view.Clean(t.Owner), 14) + b.style.Dim(view.Duration(t.Took(b.now)))
		case t.Status == team.TaskFailed:
			line = b.style.Red("✗") + " " + line + view.Pad(view.Clean(t.Owner), 14) + b.style.Red(view.Clean(t.Note))
		case t.Stuck:
			line = b.style.Yellow("!") + " " + line + b.style.Dim("stuck behind "+strings.Join(t.Waits, ", "))
		case len(t.Waits) > 0:
			line = "· " + line + b.style.Dim("depends on "+strings.Join(t.Waits, ", "))
		default:
			line = "· " + line + "ready"
		}
		out = append(out, "  "+line)
	}
	return out
}

// dimmed returns a remark at the end of a line.
func (b board) dimmed(note string) string {
	if note == "" {
		return ""
	}
	return "  " + b.style.Dim(view.Clean(note))
}

func (b board) events() []string {
	var out []string
	for _, e := range b.s.Events {
		out = append(out, fmt.Sprintf("  %s  %s", b.style.Dim(e.At.Format("15:04:05")), view.Clean(e.Text)))
	}
	return out
}

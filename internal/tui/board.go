package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Board draws a team into cols x rows cells: head, roster, tasks, newest events.
// It returns exactly rows lines, none wider than cols; with rows 0 as many lines
// as there are.
func Board(s Snapshot, cols, rows int, now time.Time, style Style) []string {
	b := board{s: s, cols: max(cols, 20), now: now, style: style}
	head := b.head()
	members, tasks, events := b.members(), b.tasks(), b.events()
	if rows <= 0 {
		return b.page(head, members, tasks, events, len(members), len(tasks), len(events))
	}
	// Three titles with a blank line above each, the head, the foot.
	room := rows - len(head) - 1 - 6
	m := min(len(members), max(1, room/3))
	t := min(len(tasks), max(1, room-m-min(len(events), 4)))
	e := min(len(events), max(0, room-m-t))
	m = min(len(members), max(m, room-t-e))
	lines := b.page(head, members, tasks, events, m, t, e)
	for len(lines) < rows-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, rows-1)], style.Dim(Cut(" q quits", b.cols)))
	return lines[:rows]
}

type board struct {
	s     Snapshot
	cols  int
	now   time.Time
	style Style
}

func (b board) page(head, members, tasks, events []string, m, t, e int) []string {
	lines := head
	section := func(title string, rows []string, n, total int, newest bool) {
		if len(rows) == 0 {
			return
		}
		lines = append(lines, "", " "+b.style.Dim(title))
		switch {
		case n >= total:
			lines = append(lines, rows...)
		case newest:
			lines = append(lines, rows[len(rows)-n:]...)
		case n == 1:
			lines = append(lines, rows[0])
		case n > 1:
			lines = append(lines, rows[:n-1]...)
			lines = append(lines, b.style.Dim(fmt.Sprintf("   … and %d more", total-n+1)))
		}
	}
	section("MEMBERS", members, m, len(members), false)
	section("TASKS", tasks, t, max(len(tasks), b.s.counts().Total), false)
	if e > 0 {
		section("EVENTS", events, e, len(events), true)
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(Cut(l, b.cols), " ")
	}
	return lines
}

func (b board) head() []string {
	c := b.s.counts()
	left := " " + b.style.Bold(Clean(b.s.Team))
	if b.s.Repo != "" {
		left += "  " + b.style.Dim(Clean(b.s.Repo))
	}
	right := "no tasks "
	if c.Total > 0 {
		right = fmt.Sprintf("%d/%d done", c.Done, c.Total)
		if words := c.words(b.style); c.Done < c.Total {
			right += " · " + words
		}
		right += " "
	}
	gap := b.cols - Width(right)
	if gap < Width(left)+2 {
		return []string{Cut(left, b.cols), Cut(" "+right, b.cols)}
	}
	return []string{Pad(left, gap) + right}
}

// activity is what the member does, or what keeps it from doing anything.
func (m Member) activity() string {
	switch {
	case m.Paused:
		return "paused"
	case m.Plan:
		return string(m.Activity) + ", plan mode"
	}
	return string(m.Activity)
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
			doing = max(doing, Width(m.activity()))
		}
	}
	var out []string
	for _, m := range b.s.Members {
		if m.Lead {
			continue
		}
		dot := b.style.Dim("○")
		state := Pad(string(m.State), 9)
		switch m.State {
		case team.Running:
			dot = b.style.Member(m.Color, "●")
		case team.Failed:
			state = b.style.Red(state)
		case team.Backoff, team.Starting:
			state = b.style.Yellow(state)
		default:
		}
		line := fmt.Sprintf("  %s %s  %s", dot, b.style.Member(m.Color, Pad(Clean(m.Name), wide)), state)
		if m.State == team.Running {
			line += "  " + Pad(m.activity(), doing)
		} else {
			line += "  " + Pad("", doing)
		}
		if t, ok := b.s.taskOf(m.Name); ok {
			line += fmt.Sprintf("  %s %s  %s", t.ID, Cut(Clean(t.Subject), 40), Elapsed(t.Took(b.now))) + b.dimmed(t.Note)
		} else if note := Clean(m.Note); note != "" && m.State != team.Running {
			line += "  " + b.style.Dim(note)
		}
		if !m.StalledSince.IsZero() {
			line += b.style.Yellow("  stalled " + Elapsed(b.now.Sub(m.StalledSince)))
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
	each(func(s string) { wide = max(wide, min(24, Width(Clean(s)))) })
	return wide
}

// rank orders tasks by how much a person wants to see them.
func rank(t Task) int {
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
	slices.SortStableFunc(sorted, func(x, y Task) int {
		if c := cmp.Compare(rank(x), rank(y)); c != 0 || rank(x) != 4 {
			return c
		}
		return y.Ended.Compare(x.Ended)
	})
	idWide, subject := 1, 10
	for _, t := range sorted {
		idWide = max(idWide, Width(t.ID))
		subject = max(subject, min(48, Width(Clean(t.Subject))))
	}
	subject = min(subject, max(10, b.cols-idWide-36))
	var out []string
	for _, t := range sorted {
		id := strings.Repeat(" ", max(0, idWide-Width(t.ID))) + t.ID
		line := fmt.Sprintf("%s %s  ", id, Pad(Clean(t.Subject), subject))
		switch {
		case t.Active():
			line = b.style.Cyan("▸") + " " + line + Pad(Clean(t.Owner), 14) + Elapsed(t.Took(b.now)) + b.dimmed(t.Note)
		case t.Status == team.TaskCompleted:
			line = b.style.Green("✓") + " " + line + Pad(Clean(t.Owner), 14) + b.style.Dim(Duration(t.Took(b.now)))
		case t.Status == team.TaskFailed:
			line = b.style.Red("✗") + " " + line + Pad(Clean(t.Owner), 14) + b.style.Red(Clean(t.Note))
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

// dimmed is a remark behind a line.
func (b board) dimmed(note string) string {
	if note == "" {
		return ""
	}
	return "  " + b.style.Dim(Clean(note))
}

func (b board) events() []string {
	var out []string
	for _, e := range b.s.Events {
		line := fmt.Sprintf("  %s  %s %s", b.style.Dim(e.At.Format("15:04:05")), Pad(Clean(e.Who), 14), Pad(Clean(e.What), 16))
		if e.ID != "" {
			line += " " + Clean(e.ID)
		}
		if note := Clean(e.Note); note != "" {
			line += "  " + b.style.Dim(note)
		}
		out = append(out, line)
	}
	return out
}

package tui

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// planOpen reports whether a plan is open that waits for an answer: the keys move over its lines.
func (m *model) planOpen() bool {
	r, ok := m.request[m.over.approval]
	return m.over.kind == requestOverlay && ok && r.Plan != "" && r.State == "pending"
}

// planKeys are the keys of an open plan.
func (m *model) planKeys() []string {
	k := m.keys
	var keys []string
	for _, a := range m.actions() {
		switch a.ID {
		case "approve", "comment-plan", "edit-plan-comment":
			keys = append(keys, k.hint(a.ID, a.Title))
		case "reject":
			words := a.Title
			if n := m.request[m.over.approval].Drafts(); n > 0 {
				words = fmt.Sprintf("%s with %s", words, commentsWords(n))
			}
			keys = append(keys, k.hint(a.ID, words))
		}
	}
	return append(keys, k.hint("turn", "mark"))
}

func commentsWords(n int) string {
	if n == 1 {
		return "1 comment"
	}
	return fmt.Sprintf("%d comments", n)
}

// linesWords says which lines "3" or "3-4" are.
func linesWords(lines string) string {
	if first, last, ok := strings.Cut(lines, "-"); ok {
		return "lines " + first + " to " + last
	}
	return "line " + lines
}

// planMarked returns the first and the last line of the plan that the keys are on, from 0.
func (m *model) planMarked() (first, last int) {
	o := &m.over
	o.line = clamp(o.line, 0, max(0, len(m.request[o.approval].PlanLines())-1))
	if o.mark > 0 {
		return min(o.line, o.mark-1), max(o.line, o.mark-1)
	}
	return o.line, o.line
}

// planTarget is what an action on a plan is about: its lines are those that the keys are on.
func (m *model) planTarget(t view.Target) view.Target {
	if t.Need == nil || t.Need.Kind != view.NeedPlan {
		return t
	}
	r, ok := m.request[t.Need.Approval]
	if !ok {
		return t
	}
	t.Change = r.OnPlan("", 0)
	if m.planOpen() && m.over.approval == r.ID {
		first, last := m.planMarked()
		lines := fmt.Sprint(first + 1)
		if last > first {
			lines = fmt.Sprintf("%d-%d", first+1, last+1)
		}
		t.Change = r.OnPlan(lines, m.over.line+1)
	}
	return t
}

// planMove moves the line of an open plan.
func (r *run) planMove(n int) {
	m := r.m
	m.over.line = clamp(m.over.line+n, 0, max(0, len(m.request[m.over.approval].PlanLines())-1))
}

// planKey is a command in an open plan; false where it is the same as in other requests.
func (r *run) planKey(id string, page int) bool {
	o := &r.m.over
	switch id {
	case "down":
		r.planMove(1)
	case "up":
		r.planMove(-1)
	case "scroll-down":
		r.planMove(page)
	case "scroll-up":
		r.planMove(-page)
	case "top":
		o.line = 0
	case "bottom":
		r.planMove(1 << 30)
	case "turn":
		if o.mark > 0 {
			o.mark = 0
		} else {
			o.mark = o.line + 1
		}
	case "back":
		if o.mark == 0 {
			return false
		}
		o.mark = 0
	default:
		return false
	}
	return true
}

// planLines adds the lines of a plan, each with the comments on it below.
func (m *model) planLines(r view.Request, lines []string, width int, numbers bool) (out []string, at, end int) {
	plan := m.markdownLines(r.Plan, width)
	n := len(fmt.Sprint(len(plan)))
	if numbers {
		plan = m.markdownLines(r.Plan, max(1, width-n-2))
	}
	open := m.planOpen() && m.over.approval == r.ID
	first, last := -1, -1
	if open {
		first, last = m.planMarked()
	}
	put := func(line int) {
		for _, c := range r.Comments {
			if c.Changed && line == 0 || !c.Changed && c.Last == line {
				lines = append(lines, m.commentLines(c, width)...)
			}
		}
	}
	put(0)
	for i, parts := range plan {
		if open && i == m.over.line {
			at = len(lines)
		}
		for j, l := range parts {
			switch {
			case numbers && j == 0 && i >= first && i <= last:
				l = m.style.Bold("›") + m.style.Dim(fmt.Sprintf("%*d ", n, i+1)) + l
			case numbers && j == 0:
				l = m.style.Dim(fmt.Sprintf(" %*d ", n, i+1)) + l
			case numbers:
				l = strings.Repeat(" ", n+2) + l
			}
			lines = append(lines, l)
		}
		put(i + 1)
		if open && i == m.over.line {
			end = len(lines) - 1
		}
	}
	return lines, at, end
}

// planScroll scrolls an open plan to the line that the keys are on, with what is said about it. At
// its first and last line, what stands above and below the plan is shown as well.
func (m *model) planScroll(lines, at, end, room int) {
	o := &m.over
	top, bottom := at, end
	if o.line == 0 {
		top = 0
	}
	if o.line >= len(m.request[o.approval].PlanLines())-1 {
		bottom = lines - 1
	}
	seen := max(1, room-1) // the last line of the screen counts what is below it
	o.scroll = min(o.scroll, max(top, at-seen+1))
	o.scroll = max(o.scroll, min(bottom-seen+1, at))
}

// planQuote returns the lines that a comment is about.
func (m *model) planQuote(d view.Deed, width int) (out []string) {
	lines := m.request[d.Approval].PlanLines()
	from, to, ranged := strings.Cut(d.Lines, "-")
	if !ranged {
		to = from
	}
	first, err := strconv.Atoi(from)
	if err != nil {
		return nil
	}
	last, err := strconv.Atoi(to)
	if err != nil {
		return nil
	}
	for _, l := range lines[clamp(first-1, 0, len(lines)):clamp(last, 0, len(lines))] {
		for _, part := range wrapped("> "+plain.Visible(strings.ReplaceAll(l, "\t", "    ")), width) {
			out = append(out, m.style.Dim(part))
		}
	}
	return out
}

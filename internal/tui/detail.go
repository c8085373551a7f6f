package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

func strip(s string) string { return ansi.Strip(s) }

// wrapped wraps a text to a width, at spaces if possible.
func wrapped(text string, width int) []string {
	if width <= 0 {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.ReplaceAll(line, "\t", "    ")
		out = append(out, strings.Split(ansi.Wrap(line, width, ""), "\n")...)
	}
	return out
}

// safe escapes every character of a text of several lines, as Escape does.
func safe(text string) string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	for i, l := range lines {
		lines[i] = plain.Visible(strings.ReplaceAll(l, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// detail draws the details of the selected item in a box.
func (m *model) detail(f *frame, width, height int) []string {
	if width <= 2 || height <= 0 {
		return nil
	}
	it, ok := m.row()
	if !ok {
		return m.happened(width, height)
	}
	if m.at == inChanges {
		return m.diffLines(it, width, height)
	}
	switch on := it.on; {
	case on.Thing == view.OnApproval:
		lines, whole := m.requestLines(on.Need.Approval, width)
		if whole && len(lines) <= height {
			if r := m.request[on.Need.Approval]; r.State == "pending" {
				f.seen[r.ID] = r.Seen()
			}
			return lines
		}
		if len(lines) > height {
			more := fmt.Sprintf("%d more lines: %s", len(lines)-height+1, m.keys.hint("open", "shows all of it"))
			lines = append(lines[:height-1:height-1], m.style.Yellow(view.Cut(more, width)))
		}
		return lines
	case on.Message != nil:
		return m.messageLines(*on.Message, width, height)
	case on.Merge != nil:
		return m.mergeLines(*on.Merge, width, height)
	case on.Thing == view.OnTask && on.Task != nil:
		t := *on.Task
		if now := m.taskOf(t.ID); now != nil { // the row may be an old one
			t = *now
		}
		return m.taskLines(t, width, height)
	case on.Member != nil:
		x := *on.Member
		if now := m.memberOf(x.Name); now != nil {
			x = *now
		}
		return m.memberLines(x, on.Need, width, height)
	case on.Need != nil:
		return wrapped(safe(on.Need.Text)+"\n\n"+on.Need.Command, width)
	}
	return m.happened(width, height)
}

// requestLines returns a whole request, wrapped and never cut. whole is false until it was read.
func (m *model) requestLines(id int64, width int) (lines []string, whole bool) {
	lines, _, _, whole = m.requestDrawn(id, width, false)
	return lines, whole
}

// requestDrawn is requestLines. With numbers the lines of a plan have their numbers, and at and end
// are the line of the screen with the cursor of the overlay and the last of what belongs to it.
func (m *model) requestDrawn(id int64, width int, numbers bool) (lines []string, at, end int, whole bool) {
	r, ok := m.request[id]
	if !ok {
		return []string{m.style.Dim("reading the request")}, 0, 0, false
	}
	put := func(text string) { lines = append(lines, wrapped(text, width)...) }
	head := fmt.Sprintf("%s %d of %s · asked %s, %s ago", r.Kind, r.ID, plain.Visible(r.Member), r.Asked.Local().Format("15:04:05"), m.age(r.Asked))
	for _, s := range []string{r.Agent, r.Mode} {
		if s != "" {
			head += " · " + plain.Visible(s)
		}
	}
	if r.Task != "" {
		head += " · task " + plain.Visible(r.Task)
	}
	put(head)
	if r.State != "pending" {
		put(m.style.Yellow(fmt.Sprintf("%s by %s", r.State, plain.Visible(r.AnsweredBy))))
	}
	lines = append(lines, "")
	what := r.Tool
	if r.Description != "" {
		what = strings.TrimSpace(what + " · " + r.Description)
	}
	if what == "" || r.Plan == "" && r.Command == "" && len(r.Fields) == 0 {
		what = r.Subject
	}
	if r.Plan == "" {
		put(safe(what))
	}
	if r.Branch != "" && r.Tool != "" {
		put(m.style.Dim("in its worktree of " + plain.Visible(r.Branch)))
	}
	if r.Command != "" {
		for _, l := range wrapped(safe(r.Command), width-2) {
			lines = append(lines, "  "+m.style.Bold(l))
		}
	}
	for _, q := range r.Questions {
		put(m.style.Bold(safe(q.Text)))
		for i, o := range q.Options {
			put(fmt.Sprintf("  %d %s", i+1, safe(o)))
		}
	}
	if r.Plan != "" {
		lines, at, end = m.planLines(r, lines, width, numbers)
	}
	for _, x := range r.Fields {
		put(m.style.Dim(plain.Visible(x.Name)))
		for _, l := range wrapped(safe(x.Text), width-2) {
			lines = append(lines, "  "+l)
		}
	}
	if r.NoRule {
		put(m.style.Dim("no rule of the team names the tool " + plain.Visible(r.Tool)))
	}
	if r.Rule != "" {
		put(m.style.Dim(strings.TrimSpace(m.keys.first("approve-always")+" from now on:") + " " + plain.Visible(r.Rule)))
		if a, ok := view.ActionByID("approve-always"); ok {
			put(m.style.Dim("at a shell: " + a.Line(view.Deed{Approval: r.ID})))
		}
	}
	if r.Feedback != "" {
		put("answer: " + safe(r.Feedback))
	}
	return lines, at, end, true
}

// markdown highlights headings, lists and code, and changes no character.
func (m *model) markdown(text string, width int) (out []string) {
	for _, lines := range m.markdownLines(text, width) {
		out = append(out, lines...)
	}
	return out
}

// markdownLines returns what each line of the text becomes.
func (m *model) markdownLines(text string, width int) (all [][]string) {
	code := false
	for line := range strings.SplitSeq(safe(text), "\n") {
		var out []string
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			code = !code
			all = append(all, []string{m.style.Dim(view.Cut(line, width))})
			continue
		case code:
			for _, l := range wrapped(line, width-2) {
				out = append(out, "  "+m.style.Cyan(l))
			}
			all = append(all, out)
			continue
		}
		in := len(line) - len(strings.TrimLeft(line, " "))
		if strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "* ") {
			in += 2
		}
		in = min(in, width/3)
		for i, l := range wrapped(line, max(1, width-in)) {
			if i > 0 {
				l = strings.Repeat(" ", in) + l
			}
			if strings.HasPrefix(trimmed, "#") {
				l = m.style.Bold(l)
			}
			out = append(out, l)
		}
		all = append(all, out)
	}
	return all
}

func (m *model) memberLines(x view.Member, need *view.Need, width, height int) []string {
	head := m.style.Member(x.Color, view.Clean(x.Name)) + "  " + view.Clean(x.Agent)
	if state := m.screenState(); !m.asOf().IsZero() {
		head += state
	} else if m.screenOf == x.Name && m.screen.Ended == "" && len(m.screen.Lines) > 0 {
		head += m.style.Dim("  screen") + state
	}
	lines := []string{view.Cut(head, width)}
	if need != nil {
		lines = append(lines, wrapped(m.style.Yellow(safe(need.Text)), width)...)
	}
	var foot []string
	d, known := m.member[x.Name]
	if known && d.Branch != "" {
		line := view.Clean(d.Branch)
		if d.Unknown != "" {
			line += "  " + view.Clean(d.Unknown)
		} else {
			line += fmt.Sprintf("  %d ahead  %d files dirty", max(0, d.Ahead), d.Dirty)
		}
		foot = append(foot, line)
	}
	var facts []string
	if t, ok := m.snap.TaskOf(x.Name); ok {
		facts = append(facts, fmt.Sprintf("task %s · attempt %d", view.Clean(t.ID), t.Attempt))
	}
	if x.Restarts > 0 {
		facts = append(facts, fmt.Sprintf("%d restarts", x.Restarts))
	}
	if known && d.Mail > 0 {
		facts = append(facts, fmt.Sprintf("%d messages on their way", d.Mail))
	}
	if x.Note != "" {
		facts = append(facts, view.Clean(x.Note))
	}
	if len(facts) > 0 {
		foot = append(foot, view.Cut(strings.Join(facts, " · "), width))
	}
	if known && len(d.Output) > 0 && x.State != team.Running {
		room := max(0, height-len(lines)-len(foot)-2)
		lines = append(lines, "", m.style.Dim("LAST OUTPUT"))
		var out []string
		for _, l := range d.Output {
			out = append(out, wrapped(plain.Visible(l), width)...)
		}
		lines = append(lines, out[max(0, len(out)-room):]...)
	}
	events := m.eventsOf(func(e view.Event) bool { return e.Who == x.Name || e.ID == x.Name })
	log := min(len(events), max(0, (height-len(lines)-len(foot))/3))
	room := height - len(lines) - len(foot)
	if log > 0 {
		room -= log + 1
	}
	if m.screenOf == x.Name && room > 0 {
		shown := m.screenLines(width, room)
		lines = append(lines, shown...)
		for range room - len(shown) {
			lines = append(lines, "")
		}
	}
	for _, l := range foot {
		lines = append(lines, view.Cut(l, width))
	}
	if log > 0 {
		lines = append(lines, m.style.Dim("WHAT HAPPENED"))
		lines = append(lines, m.eventLines(events[len(events)-log:], width)...)
	}
	return lines[:min(len(lines), height)]
}

func (m *model) eventsOf(keep func(view.Event) bool) (out []view.Event) {
	for _, e := range m.snap.Events {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

func (m *model) eventLines(list []view.Event, width int) (out []string) {
	for _, e := range list {
		out = append(out, view.Cut(m.style.Dim(e.At.Local().Format("15:04:05"))+"  "+view.Clean(e.Text), width))
	}
	return out
}

// happened returns the newest events of the team.
func (m *model) happened(width, height int) []string {
	list := m.snap.Events
	list = list[max(0, len(list)-height+1):]
	return append([]string{m.style.Dim("WHAT HAPPENED")}, m.eventLines(list, width)...)
}

func (m *model) taskLines(t view.Task, width, height int) []string {
	var lines []string
	put := func(text string) { lines = append(lines, wrapped(text, width)...) }
	state := string(t.Status)
	if t.Stuck {
		state = "stuck behind " + strings.Join(t.Waits, ", ")
	} else if len(t.Waits) > 0 {
		state += ", waits for " + strings.Join(t.Waits, ", ")
	}
	put(m.style.Bold("task " + view.Clean(t.ID) + "  " + safe(t.Subject)))
	if t.Owner != "" {
		state += " · " + view.Clean(t.Owner)
	}
	if t.Attempt > 0 {
		state += fmt.Sprintf(" · attempt %d", t.Attempt)
	}
	if took := t.Took(m.now); took > 0 {
		state += " · " + view.Age(took)
	}
	put(state)
	d, ok := m.task[t.ID]
	if !ok {
		return lines[:min(len(lines), height)]
	}
	if len(d.DependsOn) > 0 {
		put("depends on " + view.Clean(strings.Join(d.DependsOn, ", ")))
	}
	if d.Verify != "" {
		put("verified by: " + plain.Visible(d.Verify))
	}
	if d.Description != "" {
		lines = append(lines, "")
		lines = append(lines, m.markdown(d.Description, width)...)
	}
	for _, x := range []struct{ name, text string }{{"ERROR", d.Error}, {"RESULT", d.Output}} {
		if x.text != "" {
			lines = append(lines, "", m.style.Dim(x.name))
			put(safe(plain.Text(x.text)))
		}
	}
	if len(d.Events) > 0 {
		lines = append(lines, "", m.style.Dim("WHAT HAPPENED"))
		lines = append(lines, m.eventLines(d.Events, width)...)
	}
	return m.scrolled(lines, height)
}

// scrolled returns the visible part of a detail.
func (m *model) scrolled(lines []string, height int) []string {
	m.scroll = clamp(m.scroll, 0, max(0, len(lines)-height))
	lines = lines[m.scroll:]
	if len(lines) > height {
		more := len(lines) - height + 1
		lines = append(slices.Clone(lines[:max(0, height-1)]), m.style.Dim(fmt.Sprintf("%d more lines: %s", more, m.keys.first("scroll-down"))))
	}
	return lines
}

// messageLines returns a message. Of a protocol message it is one line, until it is opened.
func (m *model) messageLines(x view.Message, width, height int) []string {
	to := view.Clean(x.To)
	if to == "" {
		to = "all"
	}
	lines := []string{m.style.Bold(view.Cut(view.Clean(x.From)+" to "+to+"  "+x.At.Local().Format("15:04:05"), width)), ""}
	if text := safe(x.Text); x.Said != "" && !m.opened[messageID(x)] {
		lines = append(lines, view.Cut(x.Line(), width))
		if strings.TrimSpace(text) != x.Line() {
			lines = append(lines, m.style.Dim(m.keys.hint("open", "shows all of it")))
		}
	} else {
		lines = append(lines, wrapped(text, width)...)
	}
	lines = append(lines, "")
	for _, r := range x.Receipts {
		lines = append(lines, view.Cut(fmt.Sprintf("%s  %s", view.Clean(r.To), receiptWords(r)), width))
	}
	return m.scrolled(lines, height)
}

// receiptWords is how far a message has come to one recipient.
func receiptWords(r view.Receipt) string {
	line := fmt.Sprintf("%s %s", r.State, r.At.Local().Format("15:04:05"))
	if r.Reason != "" {
		line += ": " + view.Clean(r.Reason)
	}
	return line
}

func (m *model) mergeLines(x view.Merge, width, height int) []string {
	var lines []string
	put := func(text string) {
		if text != "" {
			lines = append(lines, wrapped(text, width)...)
		}
	}
	put(m.style.Bold(x.Title()))
	put("asked " + x.Asked.Local().Format("15:04:05"))
	put(safe(x.Why))
	for _, file := range x.Files {
		put("in conflict: " + plain.Visible(file))
	}
	if x.Task != "" {
		put("task " + view.Clean(x.Task) + " resolves it")
	}
	if x.Log != "" {
		put("log: " + plain.Visible(x.Log))
		put(m.style.Dim(m.keys.hint("open", "shows what the gate has printed")))
	}
	return m.scrolled(lines, height)
}

package tui

import (
	"context"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// readBack is the text of a member's screen while it is read back: new output does not change it.
type readBack struct {
	lines   []string // the screen as it was and, once it is read, the history above it
	reading bool
	seeks   []int // searches requested meanwhile, see seek
}

// readBack stops the member's screen, and reads the history above it.
func (r *run) readBack() {
	m, t := r.m, r.team
	if m.back != nil || len(m.screenText()) == 0 {
		return
	}
	b := &readBack{lines: m.screenText(), reading: t != nil}
	m.back, m.scroll = b, 0
	if t == nil { // the team cannot be reached now
		return
	}
	name := m.screenOf
	r.read("history", func(ctx context.Context) func(*model) {
		lines, err := t.History(ctx, name)
		return func(m *model) {
			if m.back == b {
				m.haveHistory(lines, err)
			}
		}
	})
}

// haveHistory adds the history to the text that is read back, and makes the searches and moves that
// waited for it.
func (m *model) haveHistory(lines []string, err error) {
	b := m.back
	if b.reading = false; err == nil && len(lines) > 0 {
		b.lines = untilSame(textOf(lines), b.lines)
	}
	above := max(0, len(b.lines)-m.textRoom())
	m.scroll = clamp(m.scroll, 0, above)
	for _, step := range b.seeks {
		m.seek(step)
	}
	b.seeks = nil
	m.atLive()
	switch {
	case err != nil:
		m.fail("the history cannot be read:", err, team.HintOf(err))
	case above == 0 && m.back == nil:
		m.say("the terminal keeps nothing above this", false)
	}
}

// untilSame returns the lines up to the last place where they have those of shown, or all: what came
// after them would move them.
func untilSame(lines, shown []string) []string {
	for end := len(lines); end >= len(shown) && len(shown) > 0; end-- {
		if slices.Equal(lines[end-len(shown):end], shown) {
			return lines[:end]
		}
	}
	return lines
}

// live shows the member's screen as it is now.
func (m *model) live() { m.back, m.scroll = nil, 0 }

// atLive shows the screen as it is now if the end of the text is in sight and nothing is searched.
func (m *model) atLive() {
	if m.back != nil && !m.back.reading && m.scroll <= 0 && m.filter == "" {
		m.live()
	}
}

// scrollScreen moves a member's screen by n lines; up is negative.
func (r *run) scrollScreen(n int) {
	m := r.m
	if n < 0 {
		r.readBack()
	}
	if m.back == nil {
		return
	}
	if m.scroll = max(0, m.scroll-n); n > 0 {
		m.atLive()
	}
}

// seek searches the text of this place, see model.seek. In a member's screen that is its history, too.
func (r *run) seek(step int) {
	m := r.m
	if m.at == inScreen && m.filter != "" {
		r.readBack()
		if b := m.back; b != nil && b.reading {
			if step != 0 || !slices.Contains(b.seeks, 0) {
				b.seeks = append(b.seeks, step)
			}
			return
		}
	}
	m.seek(step)
}

// textOf leaves out the empty lines at the end of a screen.
func textOf(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(strip(lines[len(lines)-1])) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// screenText returns the lines of a member's screen up to the last one with a text.
func (m *model) screenText() []string {
	if m.back != nil {
		return m.back.lines
	}
	return textOf(m.screen.Lines)
}

// screenPart returns the lines of a member's screen that are in sight.
func (m *model) screenPart(height int) []string {
	lines := m.screenText()
	from := clamp(m.scroll, 0, max(0, len(lines)-height))
	if m.back == nil || !m.back.reading { // else it waits for the history
		m.scroll = from
	}
	end := len(lines) - from
	return lines[max(0, end-height):end]
}

// screenCopy returns what is copied of a member's screen: all of it, or what is in sight of its history.
func (m *model) screenCopy() string {
	lines := m.screen.Lines
	if m.back != nil {
		lines = m.screenPart(m.textRoom())
	}
	plain := make([]string, 0, len(lines))
	for _, l := range lines {
		plain = append(plain, strip(view.Colors(l)))
	}
	return strings.Join(plain, "\n")
}

// textRoom returns how many lines of a text are in sight.
func (m *model) textRoom() int { return max(1, m.rows-3) }

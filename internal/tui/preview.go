package tui

import (
	"context"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// preview asks what an action would do, and shows that: the same key does it then.
func (r *run) preview(a view.Action, d view.Deed) {
	t, m := r.team, r.m
	if t == nil {
		m.say("the team cannot be reached now", true)
		return
	}
	m.over = overlay{kind: previewOverlay, action: a, deed: d, title: a.Title + ": reading what it would do"}
	d.Preview = true
	r.async(r.teamCtx, func(ctx context.Context) func(*model) {
		done, err := t.Do(ctx, d)
		return func(m *model) {
			if m.over.kind != previewOverlay || m.over.action.ID != a.ID {
				return // it was left meanwhile
			}
			switch {
			case err != nil:
				m.over = overlay{}
				m.fail("", err, team.HintOf(err))
			case done.Seen == "" && !strings.Contains(done.Said, "\n"):
				m.over = overlay{}
				m.say(done.Said, false)
			default:
				m.over.title, m.over.text, m.over.deed.Seen = a.Title, done.Said, done.Seen
			}
		}
	})
}

// previewKey does what was shown, if the key is that of the action and was typed by a hand that
// has seen it; any other key leaves it.
func (r *run) previewKey(e term.Event, why string) {
	m := r.m
	a, d := m.over.action, m.over.deed
	switch yes := r.keyIs(a.ID, e.Key); {
	case m.over.text != "" && d.Seen == "": // there is nothing to do
		if !m.previewScroll(e.Key) {
			m.over = overlay{}
		}
	case !yes:
		m.over = overlay{}
		m.say("nothing was done", false)
	case d.Seen == "":
		m.say("what it would do is still being read", true)
	case why != "":
		m.say(strings.Replace(why, "answered", "done", 1), true)
	case r.frame.preview != d.Seen:
		m.say("nothing was done: the screen is too small to show all of it", true)
	default:
		m.over = overlay{}
		r.do(d)
	}
}

// previewScroll moves a preview; false for another key.
func (m *model) previewScroll(key string) bool {
	page := max(1, (m.rows-3)/2)
	step, ok := map[string]int{"down": 1, "up": -1, "scroll-down": page, "scroll-up": -page}[m.keys.commandOf(key)]
	m.over.scroll += step
	return ok
}

func (r *run) keyIs(id, key string) bool {
	for _, k := range r.m.keys[id] {
		if k == key {
			return true
		}
	}
	return false
}

func (m *model) drawPreview(f *frame, width, room int) {
	o := &m.over
	lines := wrapped(m.style.Bold(o.title), width)
	if o.text != "" {
		lines = append(lines, wrapped(safe(o.text), width)...)
		if key := m.keys.hint(o.action.ID, "does it"); key != "" && o.deed.Seen != "" {
			lines = append(lines, "", key+", any other key leaves it")
		}
	}
	if o.text != "" && o.deed.Seen == "" {
		o.scroll = clamp(o.scroll, 0, max(0, len(lines)-room))
		lines, f.more = lines[o.scroll:], len(lines) > room
	}
	if len(lines) <= room {
		f.preview = o.deed.Seen
	} else {
		lines = append(lines[:max(0, room-1)], fmt.Sprintf("%d more lines", len(lines)-room+1))
	}
	for _, l := range lines {
		f.add(" " + l)
	}
}

// preview says what an action would do, and does it after a yes.
func (t *talk) preview(a view.Action, d view.Deed) {
	d.Preview = true
	done, err := t.team.Do(t.ctx, d)
	if err != nil {
		t.fail(err)
		return
	}
	for line := range strings.SplitSeq(safe(done.Said), "\n") {
		t.say("preview: %s.", strings.TrimSuffix(line, "."))
	}
	if done.Seen == "" {
		return
	}
	d.Preview, d.Seen = false, done.Seen
	t.say("%s: yes does it, anything else leaves it.", a.Title)
	t.asks = func(text string) {
		if text != "yes" {
			t.say("nothing was done.")
			return
		}
		t.carry(a, d)
	}
}

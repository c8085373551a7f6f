package tui

import (
	"strings"

	"github.com/teamctl/teamctl/internal/tui/term"
)

// overKey handles a key on an overlay.
func (r *run) overKey(e term.Event, why string) (leave bool) {
	m := r.m
	o := &m.over
	switch o.kind {
	case requestOverlay:
		return r.requestKey(e, why)
	case inputOverlay, confirmOverlay:
		r.inputKey(e, why)
	case filterOverlay:
		switch e.Key {
		case "enter":
			m.over = overlay{}
		case "esc":
			m.filter, m.over = "", overlay{}
			m.atLive()
		default:
			if o.field.key(e.Key) {
				r.filtered()
			}
		}
	case choiceOverlay, paletteOverlay, helpOverlay:
		return r.choiceKey(e)
	case previewOverlay:
		r.previewKey(e, why)
	case startOverlay:
		r.startKey(e.Key, why)
	case leaveOverlay:
		m.over = overlay{}
		if m.keys.commandOf(e.Key) == "quit" {
			m.drafts, m.lost, r.writing = map[string]string{}, nil, nil
			return r.quit()
		}
	case noOverlay:
	}
	return false
}

// filtered applies the text of the filter's field.
func (r *run) filtered() {
	r.m.filter = r.m.over.field.text
	r.seek(0)
}

// pastedLine takes a paste into a field of one line: the first line that has text.
func (r *run) pastedLine(text string) {
	o := &r.m.over
	text = strings.TrimLeft(text, "\r\n \t")
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		text = text[:end]
	}
	text = strings.ReplaceAll(text, "\t", " ")
	switch o.kind {
	case filterOverlay:
		o.field.insert(text)
		r.filtered()
	case choiceOverlay, paletteOverlay, helpOverlay:
		o.field.insert(text)
		o.at = 0
	default:
	}
}

func (r *run) requestKey(e term.Event, why string) (leave bool) {
	m := r.m
	page := max(1, (m.rows-3)/2)
	id := m.keys.commandOf(e.Key)
	if m.planOpen() && r.planKey(id, page) {
		return false
	}
	switch id {
	case "back", "open":
		m.over = overlay{}
	case "down":
		m.over.scroll++
	case "up":
		m.over.scroll--
	case "scroll-down":
		m.over.scroll += page
	case "scroll-up":
		m.over.scroll -= page
	case "top":
		m.over.scroll = 0
	case "bottom":
		m.over.scroll = 1 << 30
	case "next-need", "previous-need":
		m.over = overlay{}
		return r.command(id, e)
	case "quit", "redraw", "suspend", "view-team", "view-tasks", "view-needs", "view-mail", "view-changes", "view-usage", "view-time":
		return r.command(id, e)
	case "screen", "changes", "log", "menu", "palette", "help", "put-off", "copy":
		if !m.onRequestRow() {
			m.say("nothing was done: the request is no longer in the list", true)
			return false
		}
		if id != "copy" {
			m.over = overlay{}
		}
		return r.command(id, e)
	default:
		if a, ok := m.actionOf(e.Key); ok {
			r.begin(a, e, why)
		}
	}
	return false
}

func (r *run) inputKey(e term.Event, why string) {
	m := r.m
	o := &m.over
	switch {
	case e.Key == "esc" || e.Key == "enter" && o.comment():
		r.flush()
		if o.under != nil {
			m.over = *o.under
		} else {
			m.over = overlay{}
		}
	case e.Key == "enter" && o.kind == confirmOverlay:
		if o.field.text != o.draft {
			m.say("nothing was done: that is not its name", true)
		} else {
			r.do(o.deed)
		}
		m.over = overlay{}
	case e.Key == "enter":
		if strings.TrimSpace(o.field.text) == "" && o.deed.Comments == 0 {
			m.say("nothing is typed yet", true)
			return
		}
		if why != "" && o.action.Operation == "ApprovalAnswer" {
			m.say(why, true)
			return
		}
		d := o.deed
		d.Text = o.field.text
		w := r.writing
		r.writing = nil
		m.drafts[w.draft] = d.Text // until the action has succeeded, leaving asks for it
		m.over = overlay{}
		r.doThen(d, func(m *model) { r.sent(w) })
	default:
		if o.field.key(e.Key) {
			r.typed(e.At)
		}
	}
}

func (r *run) choiceKey(e term.Event) (leave bool) {
	m := r.m
	o := &m.over
	list := m.matching()
	switch e.Key {
	case "esc":
		m.over = overlay{}
	case "down", "tab", "ctrl-n":
		o.at = clamp(o.at+1, 0, max(0, len(list)-1))
	case "up", "backtab", "ctrl-p":
		o.at = clamp(o.at-1, 0, max(0, len(list)-1))
	case "pgdn", "pgup":
		n := max(1, m.rows-4)
		if e.Key == "pgup" {
			n = -n
		}
		o.at = clamp(o.at+n, 0, max(0, len(list)-1))
	case "enter":
		if o.at >= len(list) {
			return false
		}
		return r.chosen(list[o.at], e)
	default:
		if o.field.key(e.Key) {
			o.at = 0
		}
	}
	return false
}

func (r *run) chosen(c choice, e term.Event) (leave bool) {
	r.m.over = overlay{}
	switch {
	case c.command != "" && c.away:
		r.m.say("not here: "+c.title+"; "+placesWords(onlyIn()[c.command]), true)
		return false
	case c.command != "":
		return r.command(c.command, e)
	case c.row != "":
		if !r.selectFor(c) {
			return false
		}
	case c.away:
		r.chooseFor(c.action)
		return false
	}
	why := ""
	if r.frame.seen[r.m.approval()] == "" && c.action.Operation == "ApprovalAnswer" && c.action.Asks == "" {
		// The menu was open above the request to be answered.
		r.m.over = overlay{kind: requestOverlay, approval: r.m.approval()}
		return false
	}
	r.begin(c.action, e, why)
	return false
}

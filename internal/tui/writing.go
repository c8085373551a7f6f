package tui

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// pauseInTyping is how long a hand rests before what it has typed is written down.
const pauseInTyping = 600 * time.Millisecond

// writing is a comment while it is typed. It is a draft in the ledger from the first pause
// on: no end of the screen loses more than what was typed since the last one.
type writing struct {
	deed        view.Deed
	text, saved string
	at          time.Time // of the last key
	busy        bool      // it is being written down
}

// typed takes note of what a hand has changed in a text.
func (r *run) typed(at time.Time) {
	r.keepDraft()
	if w := r.writing; w != nil && r.m.over.comment() {
		w.text, w.at = r.m.over.field.text, at
	}
}

// unwritten is how long until a text is written down, 0 for none.
func (r *run) unwritten() time.Duration {
	w := r.writing
	if w == nil || w.busy || w.text == w.saved {
		return 0
	}
	return max(time.Millisecond, pauseInTyping-r.m.now.Sub(w.at))
}

// rested writes down what a hand has typed before its pause.
func (r *run) rested(now time.Time) {
	if w := r.writing; w != nil && !w.busy && w.text != w.saved && now.Sub(w.at) >= pauseInTyping {
		r.write(w)
	}
}

// flush writes down what has been typed, now.
func (r *run) flush() {
	if w := r.writing; w != nil && !w.busy && w.text != w.saved {
		r.write(w)
	}
}

// finishWriting writes down what has been typed before the screen ends, or gives up after a
// while.
func (r *run) finishWriting() {
	late := time.NewTimer(writingEnds)
	defer late.Stop()
	for w := r.writing; w != nil && (w.busy || w.text != w.saved); {
		r.flush()
		select {
		case change := <-r.changes:
			change(r.m)
		case <-late.C:
			return
		}
	}
}

// writingEnds is how long the end of the screen waits for a draft.
const writingEnds = 5 * time.Second

func (r *run) write(w *writing) {
	t := r.team
	if t == nil {
		r.m.drafts[w.deed.Where()] = w.text // leaving asks for it
		return
	}
	d, text := w.deed, w.text
	d.Text = text
	if d.Comment == "" && strings.TrimSpace(text) == "" {
		w.saved = text
		return
	}
	w.busy = true
	r.async(r.teamCtx, func(ctx context.Context) func(*model) {
		done, err := t.Do(context.WithoutCancel(ctx), d)
		return func(m *model) {
			w.busy = false
			if err != nil {
				w.saved = text // it is tried again with the next key
				m.drafts[d.Where()] = text
				m.fail("the draft could not be kept:", err, team.HintOf(err))
				return
			}
			delete(m.drafts, d.Where())
			w.saved, w.deed.Comment = text, done.Comment
			if strings.TrimSpace(text) == "" {
				w.deed.Comment = "" // it is deleted
			}
			if w.text != w.saved && (r.writing != w || !m.over.comment()) {
				r.write(w)
			}
			switch {
			case d.Approval != 0:
				r.readRequest(d.Approval)
			case m.at == inChanges:
				r.readPlace()
			}
		}
	})
}

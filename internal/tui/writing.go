package tui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// pauseInTyping is how long a hand rests before what it has typed is written down.
const pauseInTyping = 600 * time.Millisecond

// writing is a text while it is typed. It is a draft in the ledger from the first pause
// on: no end of the screen loses more than what was typed since the last one.
type writing struct {
	team        string
	deed        view.Deed
	comment     bool   // of a review, which has a name once it is a draft
	draft       string // key of another text in drafts and kept
	text, saved string
	at          time.Time // of the last key
	busy        bool      // it is being written down
}

// typed takes note of what a hand has changed in a text.
func (r *run) typed(at time.Time) {
	if w := r.writing; w != nil && r.m.over.kind == inputOverlay {
		w.text, w.at = r.m.over.field.text, at
		if !w.comment {
			r.m.remember(w.draft, w.text)
		}
	}
}

// remember has the text of a field come back when the field is opened again.
func (m *model) remember(draft, text string) {
	if m.kept == nil {
		m.kept = map[string]string{}
	}
	m.kept[draft] = text
	if strings.TrimSpace(text) == "" {
		delete(m.kept, draft)
		delete(m.drafts, draft)
	}
}

// note records a comment that the ledger has; one without text is deleted.
func (m *model) note(team string, d view.Deed, name string) {
	if m.noted == nil {
		m.noted = map[string]string{}
	}
	id := commentsOf(team, d) + cmp.Or(name, d.Comment)
	m.noted[id] = d.Text
	if strings.TrimSpace(d.Text) == "" {
		delete(m.noted, id)
	}
}

// commentsOf begins the ids of the comments on the changes of a member, or on a plan.
func commentsOf(team string, d view.Deed) string {
	if d.Approval != 0 {
		return fmt.Sprintf("%s: comment on plan %d, ", team, d.Approval)
	}
	return team + ": comment on " + d.Member + ", "
}

// noteSent forgets the comments that a deed has sent.
func (m *model) noteSent(team string, d view.Deed) {
	if a, _ := view.ActionByID(d.Action); a.Operation == "ReviewSend" || d.Comments > 0 {
		maps.DeleteFunc(m.noted, func(id, _ string) bool { return strings.HasPrefix(id, commentsOf(team, d)) })
	}
}

// loseLedger takes note of whether the ledger of a team is gone.
func (m *model) loseLedger(team string, gone bool) {
	if !gone {
		delete(m.lost, team)
		return
	}
	if m.lost == nil {
		m.lost = map[string]bool{}
	}
	m.lost[team] = true
}

// unsent returns the unsent text that would be lost with the screen: what no ledger has, and what was typed here
// and kept in one that is gone.
func (m *model) unsent() map[string]string {
	all := maps.Clone(m.drafts)
	for _, kept := range []map[string]string{m.kept, m.noted} {
		for name, text := range kept {
			if team, _, _ := strings.Cut(name, ": "); m.lost[team] && all[name] == "" {
				all[name] = text
			}
		}
	}
	return all
}

// readDraft puts what was kept of a text into its field. What is typed meanwhile stays behind it.
func (r *run) readDraft(w *writing) {
	t := r.team
	if t == nil {
		return
	}
	began, purpose := w.text, w.deed.Purpose()
	r.async(r.teamCtx, func(ctx context.Context) func(*model) {
		all, err := t.Drafts(ctx)
		return func(m *model) {
			o := &m.over
			switch {
			case r.writing != w || o.kind != inputOverlay:
			case err != nil:
				m.fail("the draft cannot be read:", err, team.HintOf(err))
			case all[purpose] == "" || all[purpose] == w.text:
			case w.text == began:
				o.field = field{text: all[purpose], at: len(all[purpose])}
				w.text, w.saved = all[purpose], all[purpose]
				m.remember(w.draft, w.text)
			case began == "":
				o.field.text, o.field.at = all[purpose]+o.field.text, o.field.at+len(all[purpose])
				r.typed(w.at)
			}
		}
	})
}

// sent forgets a text that was sent.
func (r *run) sent(w *writing) {
	r.m.remember(w.draft, "")
	w.text = "" // what is still being written down is dropped then
	if !w.busy {
		w.saved = ""
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

// flush writes down what has been typed, now. What could not be is tried again.
func (r *run) flush() {
	w := r.writing
	if w != nil && w.comment && !w.busy && w.text != "" && r.m.drafts[w.draft] == w.text {
		w.saved = ""
	}
	if w != nil && !w.busy && w.text != w.saved {
		r.write(w)
	}
}

// finishWriting writes down what has been typed before the screen ends, or gives up after a
// while.
func (r *run) finishWriting(most time.Duration) {
	late := time.NewTimer(most)
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

const (
	writingEnds = 5 * time.Second // how long the end of the screen waits for a draft
	writingAsks = time.Second     // how long before the person is asked
)

func (r *run) write(w *writing) {
	t := r.team
	if !w.comment {
		r.keep(w)
		return
	}
	if t == nil || r.m.name != w.team {
		r.m.drafts[w.draft] = w.text // leaving asks for it
		return
	}
	d, text := w.deed, w.text
	d.Text = text
	if d.Comment == "" && strings.TrimSpace(text) == "" {
		w.saved = text
		delete(r.m.drafts, w.draft)
		return
	}
	w.busy = true
	delete(r.unkept, w.draft)
	r.async(r.ctx, func(ctx context.Context) func(*model) {
		done, err := t.Do(context.WithoutCancel(ctx), d)
		return func(m *model) {
			w.busy = false
			if err != nil {
				w.saved = text // it is tried again with the next key
				m.drafts[w.draft] = text
				m.fail("the draft could not be kept:", err, team.HintOf(err))
				r.notKept(w, err)
				return
			}
			delete(m.drafts, w.draft)
			r.isKept(w)
			w.saved, w.deed.Comment = text, done.Comment
			m.note(w.team, d, done.Comment)
			if strings.TrimSpace(text) == "" {
				w.deed.Comment = "" // it is deleted
			}
			if w.text != w.saved && (r.writing != w || !m.over.comment()) {
				r.write(w)
			}
			switch {
			case m.name != w.team:
			case d.Approval != 0:
				r.readRequest(d.Approval)
			case m.at == inChanges:
				r.readPlace()
			}
		}
	})
}

// keep writes down a text that is no comment.
func (r *run) keep(w *writing) {
	t, text := r.team, w.text
	if t == nil || r.m.name != w.team {
		r.m.drafts[w.draft], w.saved = text, text // leaving asks for it
		return
	}
	d := w.deed
	d.Text = text
	w.busy = true
	delete(r.unkept, w.draft)
	r.async(r.ctx, func(ctx context.Context) func(*model) {
		err := t.Keep(context.WithoutCancel(ctx), d)
		return func(m *model) {
			w.busy, w.saved = false, text
			switch {
			case err != nil && w.text != "":
				m.drafts[w.draft] = w.text
				m.fail("the draft could not be kept:", err, team.HintOf(err))
				r.notKept(w, err)
				return // it is tried again with the next key, or when the team can be changed
			case err == nil:
				delete(m.drafts, w.draft)
				r.isKept(w)
			}
			if w.text != w.saved && (r.writing != w || m.over.kind != inputOverlay) {
				r.write(w)
			}
		}
	})
}

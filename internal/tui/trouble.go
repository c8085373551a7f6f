package tui

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// trouble is why the team cannot be changed: its ledger is locked, or the disk is full.
type trouble struct {
	words string    // "" if it can
	since time.Time // first failure
	next  time.Time // when to try again
	pause time.Duration
	busy  bool // it is being tried
}

// Pauses between two tries: the first, and the longest.
const (
	troublePause = time.Second
	troubleMost  = time.Minute
)

// wrote takes note of the result of a change of the team. Once changes succeed again, the texts that could
// not be kept are.
func (r *run) wrote(err error) {
	m := r.m
	x := &m.trouble
	words := view.TroubleWords(err)
	switch {
	case err != nil && words == "": // the ledger has refused it
		return
	case err == nil:
		*x = trouble{}
		list := r.unkept
		r.unkept = nil
		for _, w := range list {
			if !w.busy && w.text != "" {
				r.write(w)
			}
		}
		return
	case x.words == "":
		x.since, x.pause = m.now, troublePause
	default:
		x.pause = min(2*x.pause, troubleMost)
	}
	x.words, x.next = words, m.now.Add(x.pause)
}

// untilTry returns the time until the trouble is tried again, 0 for never.
func (r *run) untilTry() time.Duration {
	x := r.m.trouble
	if x.words == "" || x.busy || r.team == nil {
		return 0
	}
	return max(time.Millisecond, x.next.Sub(r.m.now))
}

// tryAgain asks whether the team can be changed again, when that is due.
func (r *run) tryAgain(now time.Time) {
	t, x := r.team, &r.m.trouble
	if x.words == "" || x.busy || t == nil || now.Before(x.next) {
		return
	}
	x.busy = true
	r.async(r.teamCtx, func(ctx context.Context) func(*model) {
		err := t.Writable(ctx)
		return func(*model) {
			if ctx == r.teamCtx && ctx.Err() == nil {
				x.busy = false
				r.wrote(err)
			}
		}
	})
}

// notKept keeps a text for the time when the team can be changed again.
func (r *run) notKept(w *writing, err error) {
	if r.m.name != w.team {
		return
	}
	if r.unkept == nil {
		r.unkept = map[string]*writing{}
	}
	if view.TroubleWords(err) != "" {
		r.unkept[w.draft] = w
	}
	r.wrote(err)
}

// isKept takes note that a text was kept.
func (r *run) isKept(w *writing) {
	if r.m.name == w.team {
		delete(r.unkept, w.draft)
		r.wrote(nil)
	}
}

// problemWords say that the team cannot be read and of when the facts are, from long to short.
func (m *model) problemWords() []string {
	if m.problem == "" || !m.have {
		return nil
	}
	at := m.problemAt.Local().Format("15:04:05")
	words := []string{"as of " + at + ": " + view.Clean(m.problem)}
	if m.problemIs != "" {
		words = []string{"as of " + at + ": " + m.problemIs, m.problemIs + ", ? " + at}
	}
	return append(words, "? as of "+at, "? "+at)
}

// troubleWords say why the team cannot be changed, from long to short.
func (m *model) troubleWords() []string {
	if m.trouble.words == "" || m.problem != "" {
		return nil
	}
	words := m.trouble.words + " since " + m.trouble.since.Local().Format("15:04:05")
	return []string{words + ": nothing can be saved", words, m.trouble.words, "! not saved"}
}

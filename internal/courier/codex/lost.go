package codex

import (
	"context"
	"slices"
)

// steered is a text that a turn has accepted and the thread does not show yet. When a turn is
// interrupted or fails, Codex drops the texts that it has not processed.
type steered struct {
	id, text string
	turn     string
	lost     bool // its turn was broken off
}

// took records which turn has accepted a text. mu is held.
func (a *appServer) took(id, text, turn string) {
	a.forget(id)
	if _, known := a.seen[id]; !known && turn != "" {
		a.steered = append(a.steered, steered{id, text, turn, turn == a.brokenOff})
	}
}

// forget removes a text from steered. mu is held.
func (a *appServer) forget(id string) {
	a.steered = slices.DeleteFunc(a.steered, func(s steered) bool { return s.id == id })
}

// breaksOff records that a turn was interrupted or has failed.
func (a *appServer) breaksOff(turn string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.brokenOff = turn
	for i := range a.steered {
		if a.steered[i].turn == turn {
			a.steered[i].lost = true
		}
	}
	if a.owesText() {
		a.wake()
	}
}

// owesText reports whether the thread is at rest, not at a limit, and may lack texts of a turn
// that was broken off. mu is held.
func (a *appServer) owesText() bool {
	return a.status.atRest() && a.limit == nil && slices.ContainsFunc(a.steered, func(s steered) bool { return s.lost })
}

// giveAgain sends the lost texts again. The thread was read since it came to rest, and texts found
// there were removed from steered.
func (a *appServer) giveAgain(ctx context.Context, conn *rpc, thread string) {
	var again []steered
	a.mu.Lock()
	for _, s := range a.steered {
		if s.lost {
			again = append(again, s)
		}
	}
	a.mu.Unlock()
	for _, s := range again {
		a.f.Log.Info("give again what a broken turn has dropped", "member", a.f.Name, "message", s.id, "turn", s.turn)
		if err := a.begin(ctx, conn, thread, s.id, s.text); err != nil {
			a.f.Log.Warn("give again what a broken turn has dropped", "member", a.f.Name, "message", s.id, "err", err)
			return // retried when the thread is at rest again
		}
	}
}

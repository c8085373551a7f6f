package services

import (
	"context"
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Stalls writes an event when a working member has given no sign for a while, once for each such
// time, whichever supervisor is killed. Nothing reports what does not happen, so it looks when the
// next member will have stalled.
type Stalls struct {
	loop.Quiet
	team loop.Team
	told map[string]time.Time // last sign before the stall that was reported, by session
}

// NewStalls returns the service.
func NewStalls(t loop.Team) *Stalls { return &Stalls{team: t, told: map[string]time.Time{}} }

// Ready looks at the members that an earlier supervisor has left.
func (s *Stalls) Ready() { s.look() }

// Forget resets a member that has a new generation.
func (s *Stalls) Forget(session string) { delete(s.told, session) }

// Event looks once a member may have begun to work.
func (s *Stalls) Event(e ledger.Event) {
	if e.What == team.EventMemberActivity && !s.Bus.Armed("stalls") {
		s.look()
	}
}

// Jumped records the jump for all who ask whether a member has stalled, and looks again.
func (s *Stalls) Jumped(time.Duration) {
	if err := atomicfile.Write(s.team.Layout.ClockJump(), nil, 0o600, false); err != nil {
		s.team.Log.Warn("record a jump of the clock", "err", err)
	}
	if s.Bus.Armed("stalls") {
		s.look()
	}
}

// stalled is a member that has given no sign since a time.
type stalled struct {
	row   ledger.Member
	since time.Time
}

func (s *Stalls) look() {
	now := time.Now()
	var fresh []stalled
	var others []ledger.Member
	var again time.Duration // until the next look at members that have stalled: they may stall anew
	for _, m := range s.Bus.Members() {
		since := state.Stalled(s.team.Layout, m.Member, now)
		if since.IsZero() {
			others = append(others, m.Member)
			continue
		}
		again = state.StalledAfter
		if !since.Equal(s.told[m.SessionKey]) {
			s.told[m.SessionKey] = since
			fresh = append(fresh, stalled{m.Member, since})
		}
	}
	due := state.StallDue(s.team.Layout, others, now)
	if due == 0 || again > 0 && again < due {
		due = again
	}
	s.Bus.After("stalls", due, s.look)
	if len(fresh) == 0 {
		return
	}
	s.Bus.Go("stalls", func(ctx context.Context) func() {
		var failed []string
		for _, x := range fresh {
			if err := s.report(ctx, x); err != nil && ctx.Err() == nil {
				s.team.Log.Warn("record that a member has stalled", "member", x.row.Name, "err", err)
				failed = append(failed, x.row.SessionKey)
			}
		}
		return func() {
			for _, session := range failed {
				delete(s.told, session)
			}
		}
	})
}

// report writes the event, unless an earlier supervisor has.
func (s *Stalls) report(ctx context.Context, x stalled) error {
	type sign struct {
		Last int64 `json:"last"` // sign, Unix milliseconds
	}
	before, err := s.team.Ledger.Events(ctx, 0, 0, ledger.EventFilter{What: team.EventMemberStalled, ID: x.row.Name})
	if err != nil {
		return err
	}
	for _, e := range before {
		var was sign
		if json.Unmarshal(e.Data, &was) == nil && was.Last == x.since.UnixMilli() {
			return nil
		}
	}
	data, err := json.Marshal(sign{x.since.UnixMilli()})
	if err != nil {
		return err
	}
	_, err = s.team.Ledger.Event(ctx, ledger.Event{What: team.EventMemberStalled, ID: x.row.Name, Data: data})
	return err
}

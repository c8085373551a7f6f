package services

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/hands"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// strandedFor is how long ready tasks must be without a member that can take them: a restart leaves
// them without one for a moment. It is also the delay of a check after an event.
const strandedFor = 5 * time.Second

// Stranded writes an event when no member can take any of the ready tasks, once for each such time,
// whichever supervisor is killed: the ledger knows whether it was written. It checks after events of
// tasks and members.
type Stranded struct {
	loop.Quiet
	team    loop.Team
	looking bool
	seen    bool // at the last check, and not yet written
}

// NewStranded returns the service.
func NewStranded(t loop.Team) *Stranded { return &Stranded{team: t} }

// Ready checks what an earlier supervisor has left.
func (s *Stranded) Ready() { s.later() }

// Event handles events that may make a task ready, or a member unable to take it.
func (s *Stranded) Event(e ledger.Event) {
	switch {
	case e.What == team.EventTaskStranded, e.What == team.EventMemberActivity, e.What == team.EventMemberReady:
	case e.What == team.EventAutoClaimSet, strings.HasPrefix(e.What, team.TaskEvents), strings.HasPrefix(e.What, team.MemberEvents):
		s.later()
	}
}

// Busy keeps the supervisor until a second check.
func (s *Stranded) Busy() bool { return s.seen || s.looking }

func (s *Stranded) later() {
	if !s.Bus.Armed("stranded") {
		s.Bus.After("stranded", strandedFor, s.look)
	}
}

// look checks. Tasks that are stranded at two checks in a row are written.
func (s *Stranded) look() {
	if s.looking {
		s.later()
		return
	}
	s.looking = true
	sure := s.seen
	s.Bus.Go("look for tasks that no member can take", func(ctx context.Context) func() {
		again, err := s.check(ctx, sure)
		if err != nil && ctx.Err() == nil {
			s.team.Log.Warn("look for tasks that no member can take", "err", err)
		}
		return func() {
			s.looking, s.seen = false, again
			if again {
				s.later()
			}
		}
	})
}

// check records what is stranded: if it is sure, else again is true for a second check.
func (s *Stranded) check(ctx context.Context, sure bool) (again bool, err error) {
	short, err := stranded(ctx, s.team.Ledger)
	if err != nil {
		return false, err
	}
	was, err := s.team.Ledger.Stranded(ctx)
	if err != nil || was == (short != nil) {
		return false, err
	}
	if short == nil {
		_, err = s.team.Ledger.SetStranded(ctx, "", nil)
		return false, err
	}
	if !sure {
		return true, nil
	}
	data, err := json.Marshal(short)
	if err != nil {
		return false, err
	}
	_, err = s.team.Ledger.SetStranded(ctx, short.Tasks[0], data)
	return false, err
}

// stranded returns the ready tasks that no member can take; nil if there are none.
func stranded(ctx context.Context, led *ledger.Ledger) (*hands.Shortage, error) {
	roster, err := led.Members(ctx, false)
	if err != nil {
		return nil, err
	}
	return hands.Stranded(ctx, led, roster)
}

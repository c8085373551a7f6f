package supervisor

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/delivery"
	"github.com/teamctl/teamctl/team"
)

// modeCourier is a fakeCourier whose agent can be told its mode.
type modeCourier struct {
	*fakeCourier
	modes chan team.Mode
}

func (c modeCourier) Open(_ context.Context, in delivery.ChannelIn) (delivery.Channel, error) {
	c.opened <- in
	return c, nil
}

func (c modeCourier) SetMode(mode team.Mode) string {
	select {
	case c.modes <- mode:
	default: // the test has seen enough
	}
	return "with its next message"
}

// A mode from an approved plan or from a person reaches the running agent through its channel, and
// explain reports when it takes effect.
func TestModeReachesTheAgent(t *testing.T) {
	t.Parallel()
	c := modeCourier{&fakeCourier{}, make(chan team.Mode, 8)}
	r := newRig(t)
	c.opened = make(chan delivery.ChannelIn, 1)
	c.deliver = func(_ context.Context, mail []team.Mail) []team.Outcome { return held(mail) }
	c.answer = func(team.Reply) error { return nil }
	r.by, r.plans = c, plans{channel: true}
	s := r.supervisor()
	m := r.spawn(s, "a", "never")
	<-c.opened
	if got := <-c.modes; got != m.Spec.Mode {
		t.Errorf("it begins in %q", got)
	}
	mode := team.ModeAcceptEdits
	if _, err := r.led.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, Mode: &mode}); err != nil {
		t.Fatal(err)
	}
	if got := <-c.modes; got != mode {
		t.Errorf("told %q", got)
	}
	e, err := s.Explain(t.Context(), "a")
	if err != nil || e.Mode != mode || e.ModeFrom != "with its next message" {
		t.Errorf("%+v, %v", e, err)
	}
}

package opencode

import (
	"slices"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// A prompt without an agent would go to the default one, whatever opencode was started with: each
// prompt of a planning member names the plan agent until its plan is approved.
func TestServerTakesAMode(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	r.facts.Mode, r.facts.Link.Mode = team.ModePlan, team.ModePlan
	s := startOpenCode(t, r, addr, false)
	r.open(t)
	r.Wait(t, "the session", 0, up)
	r.Deliver(t, false, "m1", "@@say one")
	if when := r.Ch.SetMode(team.ModeAcceptEdits); when != adapter.AtItsNextStart {
		t.Errorf("what is in its configuration takes effect %q", when)
	}
	if when := r.Ch.SetMode(team.ModeDefault); when != adapter.WithItsNextMessage {
		t.Errorf("it takes effect %q", when)
	}
	r.Deliver(t, false, "m2", "@@say two")
	if got := s.Agents(); !slices.Equal(got, []string{"plan", "build"}) {
		t.Errorf("prompts for %q", got)
	}
}

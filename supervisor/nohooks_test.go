package supervisor

import (
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// The row of a running member whose program runs no hooks says so, after what it waits for, until a
// hook is heard.
func TestNoHooksAreTold(t *testing.T) {
	t.Parallel()
	r, say := talking(t, &fakeCourier{})
	see := func(does team.Activity, no *bool) {
		say(team.Observation{Tier: team.TierScreen, Activity: does, Source: "the screen", NoHooks: no})
	}
	yes, no := true, false
	see(team.Idle, nil)
	see("", &yes)
	r.wait("a", "without hooks", state.HasNoHooks)
	see(team.Working, nil)
	r.wait("a", "at work", func(m ledger.Member) bool { return m.Activity == team.Working && state.HasNoHooks(m) })
	see(team.Waiting, nil)
	r.wait("a", "waiting", func(m ledger.Member) bool { return m.Activity == team.Waiting && !state.HasNoHooks(m) })
	see(team.Idle, nil)
	r.wait("a", "idle", func(m ledger.Member) bool { return m.Activity == team.Idle && state.HasNoHooks(m) })
	see("", &no)
	r.wait("a", "with hooks", func(m ledger.Member) bool { return m.Reason == "" })
}

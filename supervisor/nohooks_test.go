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

// The row of a running member whose program has stopped reporting its state says so, whatever its
// screen shows of a rest, until the program or its screen shows another state.
func TestSilenceIsTold(t *testing.T) {
	t.Parallel()
	r, say := talking(t, &fakeCourier{})
	see := func(tier team.Tier, does team.Activity) {
		say(team.Observation{Tier: tier, Activity: does, Source: "the " + tier.String()})
	}
	silent := func(m ledger.Member) bool {
		return m.Activity == team.ActivityUnknown && m.Reason == team.WhySilent+"the channel"
	}
	see(team.TierChannel, team.ActivityUnknown)
	r.wait("a", "not reporting yet", silent)
	see(team.TierChannel, team.Idle)
	r.wait("a", "idle", func(m ledger.Member) bool { return m.Activity == team.Idle && m.Reason == "" })
	see(team.TierChannel, team.ActivityUnknown)
	see(team.TierScreen, team.Idle)
	r.wait("a", "without its channel", silent)
	see(team.TierScreen, team.Working)
	r.wait("a", "at work", func(m ledger.Member) bool { return m.Activity == team.Working && m.Reason == "" })
	see(team.TierScreen, team.Idle)
	r.wait("a", "at rest on its screen", silent)
}

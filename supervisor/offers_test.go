package supervisor

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/delivery"
	"github.com/teamctl/teamctl/team"
)

// offered are the members that were told of a task and have the message, in order.
func (r *rig) offered() (names []string) {
	r.Helper()
	ms, err := r.led.Messages(r.Context(), ledger.MessageFilter{From: team.SystemName, Kind: team.KindInfo})
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range ms {
		d, err := r.led.Delivery(r.Context(), m.ID, m.To)
		if err != nil {
			r.Fatal(err)
		}
		if d.State != team.Accepted {
			break // it wakes its recipient, who is told of nothing else until then
		}
		names = append(names, m.To)
	}
	return names
}

// hearers returns a rig with members whose channel takes all mail, and say, which has one of them
// observed in a state.
func hearers(t *testing.T, again time.Duration, names ...string) (r *rig, say map[string]func(team.Activity, string)) {
	t.Helper()
	c := &fakeCourier{opened: make(chan delivery.ChannelIn, 1)}
	c.answer = func(team.Reply) error { return nil }
	c.deliver = func(_ context.Context, mail []team.Mail) (out []team.Outcome) {
		for _, m := range mail {
			out = append(out, team.Outcome{ID: m.ID, State: team.Accepted, Evidence: "it has it"})
		}
		return out
	}
	r = newRig(t)
	r.by, r.plans = c, plans{channel: true}
	r.policy.Offer, r.policy.OfferAgain = time.Millisecond, again
	s := r.supervisor()
	say = map[string]func(team.Activity, string){}
	for _, name := range names {
		r.spawn(s, name, "never")
		report := (<-c.opened).Report
		say[name] = func(does team.Activity, failed string) {
			report(team.Observation{Tier: team.TierHook, Activity: does, Failed: failed, Source: "a hook"})
			r.wait(name, string(does), func(m ledger.Member) bool { return m.Activity == does && m.TurnError == failed })
		}
	}
	return r, say
}

// toldOf waits until these members, and no others, were told of a task, in order.
func (r *rig) toldOf(want ...string) {
	r.Helper()
	r.until("told", func() bool { return len(r.offered()) >= len(want) })
	if got := r.offered(); !slices.Equal(got, want) {
		r.Fatalf("told %q, want %q", got, want)
	}
}

// A member whose last turn has failed is not offered the next task at once: the lead was told of
// the failure, and would be told of the new turn instead.
func TestNoTaskRightAfterAFailure(t *testing.T) {
	t.Parallel()
	r, say := hearers(t, time.Hour, "a", "b")
	say["a"](team.Working, "")
	say["a"](team.Idle, "API Error: 400")
	if _, err := r.led.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "do it"}}, team.LeadName); err != nil {
		t.Fatal(err)
	}
	say["b"](team.Working, "")
	say["b"](team.Idle, "")
	r.toldOf("b") // a has waited longer
	say["b"](team.Working, "")
	say["b"](team.Idle, "")
	say["a"](team.Working, "")
	say["a"](team.Idle, "")
	r.toldOf("b", "a")
}

// It is offered later, even if nothing else happens.
func TestATaskSomeTimeAfterAFailure(t *testing.T) {
	t.Parallel()
	r, say := hearers(t, 10*time.Millisecond, "a")
	say["a"](team.Working, "")
	say["a"](team.Idle, "API Error: 400")
	if _, err := r.led.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "do it"}}, team.LeadName); err != nil {
		t.Fatal(err)
	}
	r.toldOf("a")
}

// A ready task is offered to one idle foreign agent at a time, and to the next one if that one has
// not claimed it, also after the death of its owner.
func TestIdleAgentsHearOfReadyTasks(t *testing.T) {
	t.Parallel()
	r, say := hearers(t, time.Hour, "a", "b")
	say["a"](team.Working, "")
	say["b"](team.Idle, "")
	if _, err := r.led.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "do it"}}, team.LeadName); err != nil {
		t.Fatal(err)
	}
	r.toldOf("b")
	say["a"](team.Idle, "") // b thinks about it
	say["b"](team.Working, "")
	say["b"](team.Idle, "")
	r.toldOf("b", "a") // b has not taken it
	say["b"](team.Working, "")
	b, err := r.led.Member(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.led.Claim(t.Context(), ledger.ClaimIn{Owner: b.SessionKey, ID: "1"}); err != nil {
		t.Fatal(err)
	}
	say["a"](team.Working, "")
	say["a"](team.Idle, "")
	r.m.agent(r.layout, "b").end(backends.Exit{Known: true, Code: 1})
	r.waitState("b", team.Failed)
	r.toldOf("b", "a", "a")
}

package supervisor

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/team"
)

// notices are the idle notices of a, as far as they can be read, oldest first.
func (r *rig) idleNotices() (out []inbox.IdleNotification) {
	r.Helper()
	ms, err := r.led.Messages(r.Context(), ledger.MessageFilter{From: "a", Kind: team.KindIdle})
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range ms {
		f, _ := inbox.Parse(m.Text)
		n, ok := f.(inbox.IdleNotification)
		if !ok {
			r.Fatalf("%q is no notice", m.Text)
		}
		out = append(out, n)
	}
	return out
}

// An interrupted turn is reported as interrupted once it is over. Requests made in the
// turn no longer wait; requests of a tool do.
func TestInterruptEndsWhatWasAsked(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	r, say := talking(t, c)
	see := func(o team.Observation) {
		t.Helper()
		o.Tier, o.Source = team.TierChannel, "its server"
		say(o)
		r.wait("a", string(o.Activity), func(m ledger.Member) bool { return m.Activity == o.Activity })
	}
	a, err := r.led.Member(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	see(team.Observation{Activity: team.Working})
	for _, id := range []string{approval.HookRequest + "1", "perm-1"} {
		_, err := r.led.Ask(t.Context(), ledger.AskIn{Session: a.SessionKey, Kind: ledger.ApprovePermission, RequestID: id, Subject: "Bash"})
		if err != nil {
			t.Fatal(err)
		}
	}
	see(team.Observation{Activity: team.Waiting, For: team.WaitPermission,
		Ask: &team.Ask{ID: "call-1", For: team.WaitPermission, Tool: "shell", Description: "rm it"}})
	state := func(id string) ledger.ApprovalState {
		x, err := r.led.Approval(t.Context(), id)
		if err != nil {
			return ""
		}
		return x.State
	}
	r.until("asked", func() bool { return state("call-1") == ledger.ApprovalPending })
	if err := c.s.InterruptMember(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"call-1", approval.HookRequest + "1"} {
		if got := state(id); got != ledger.ApprovalPending {
			t.Errorf("%s is %s before the turn is known to be over", id, got)
		}
	}
	see(team.Observation{Activity: team.Idle})
	for _, id := range []string{"call-1", approval.HookRequest + "1"} {
		r.until("withdrawn", func() bool { return state(id) == ledger.ApprovalExpired })
		if x, err := r.led.Approval(t.Context(), id); err != nil || x.Feedback != "its turn was interrupted" {
			t.Errorf("%+v, %v", x, err)
		}
	}
	if got := state("perm-1"); got != ledger.ApprovalPending {
		t.Errorf("what was asked by a tool is %s", got)
	}
	see(team.Observation{Activity: team.Working})
	see(team.Observation{Activity: team.Idle})
	see(team.Observation{Activity: team.Working})
	see(team.Observation{Activity: team.Idle, Interrupted: true}) // by a person, at its screen
	var reasons []string
	for _, n := range r.idleNotices() {
		reasons = append(reasons, n.IdleReason)
	}
	if want := []string{inbox.IdleInterrupted, inbox.IdleAvailable, inbox.IdleInterrupted}; !slices.Equal(reasons, want) {
		t.Errorf("told %q, want %q", reasons, want)
	}
}

// An agent whose turn cannot be ended was not interrupted.
func TestFailedInterruptIsNone(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	r, say := talking(t, c)
	seen := func(does team.Activity) {
		t.Helper()
		say(team.Observation{Tier: team.TierChannel, Activity: does, Source: "its server"})
		r.wait("a", string(does), func(m ledger.Member) bool { return m.Activity == does })
	}
	seen(team.Working)
	r.post("its channel is open")
	r.until("open", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.given) > 0
	})
	c.interrupt = func(context.Context) error { return team.Errorf(team.CodeUnavailable, "not reached") }
	if err := c.s.InterruptMember(t.Context(), "a"); !team.IsCode(err, team.CodeUnavailable) {
		t.Fatal(err)
	}
	if _, err := c.s.Explain(t.Context(), "a"); err != nil { // the loop has taken it back
		t.Fatal(err)
	}
	seen(team.Idle)
	if got := r.idleNotices(); len(got) != 1 || got[0].IdleReason != inbox.IdleAvailable {
		t.Errorf("%+v", got)
	}
}

// The idle notice of a foreign agent names the task that its turn completed, and its
// messages to peers.
func TestIdleNoticeSaysWhatWasDone(t *testing.T) {
	t.Parallel()
	r, say := talking(t, &fakeCourier{})
	seen := func(does team.Activity) {
		t.Helper()
		say(team.Observation{Tier: team.TierChannel, Activity: does, Source: "its server", At: time.Now()})
		r.wait("a", string(does), func(m ledger.Member) bool { return m.Activity == does })
	}
	if _, _, err := r.led.AddMember(t.Context(), ledger.Member{SessionKey: "s-b", Name: "b"}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.led.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "do it"}}, team.LeadName); err != nil {
		t.Fatal(err)
	}
	a, err := r.led.Member(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	seen(team.Working)
	task, err := r.led.Claim(t.Context(), ledger.ClaimIn{Owner: a.SessionKey, ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.led.Complete(t.Context(), ledger.TaskRef{ID: "1", Owner: a.SessionKey, Attempt: task.Attempt}, ledger.Result{}); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: "a", To: "b", Text: "look at my branch"})
	if err != nil {
		t.Fatal(err)
	}
	seen(team.Idle)
	seen(team.Working)
	seen(team.Idle)
	got := r.idleNotices()
	if len(got) != 2 || got[0].CompletedTaskID != "1" || got[0].CompletedStatus != "completed" || got[0].Summary != "[to b] look at my branch" {
		t.Fatalf("%+v", got)
	}
	if n := got[1]; n.CompletedTaskID != "" || n.Summary != "" {
		t.Errorf("told again: %+v", n)
	}
}

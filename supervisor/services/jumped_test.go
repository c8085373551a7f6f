package services

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// ahead is how far the deadlines of these tests are.
const ahead = 10 * time.Minute

// jumps has a service that waits for a time of day told of a jump, as after a sleep: it looks at its
// deadlines again, and waits for the next one by the time of day.
func jumps(t *testing.T, b *looptest.Bus, s loop.Service, timer, look string) {
	t.Helper()
	if !b.Armed(timer) {
		t.Fatalf("%s is not armed", timer)
	}
	b.Periods[timer] = 0
	s.Jumped(0)
	if look != "" {
		if d := b.Periods[look]; d <= 0 || d > time.Second {
			t.Fatalf("it looks in %s", d)
		}
		b.Fire(look)
		b.Next()
	}
	if d := b.Periods[timer]; d < ahead-time.Minute || d > ahead+time.Second || !b.Armed(timer) {
		t.Errorf("%s: again in %s", timer, d)
	}
	b.After(timer, 0, nil)
	s.Jumped(0)
	if len(b.Timers) > 0 {
		t.Errorf("it looks though it waits for nothing: %d timers", len(b.Timers))
	}
}

func TestExpiryAfterJump(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	b := looptest.NewBus(t, members...)
	_, err := tm.Ledger.Ask(t.Context(), ledger.AskIn{RequestID: "r", Kind: ledger.ApprovePermission, Session: members[0].SessionKey, Subject: "Bash", Deadline: time.Now().Add(ahead).UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	x := NewExpiry(tm)
	b.StartService(x)
	b.Next()
	jumps(t, b, x, "approvals", "approvals")
}

func TestJoinedAfterJump(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t)
	guest, _, err := tm.Ledger.AddMember(t.Context(), ledger.Member{Name: "guest", Role: team.RoleExecutor, Desired: team.WantStopped, Spec: team.MemberSpec{Agent: team.AgentExternal}}, true)
	if err != nil {
		t.Fatal(err)
	}
	in, err := JoinedRequest(team.LeadName, guest, "done", time.Now().Add(ahead))
	if err == nil {
		_, _, err = tm.Mailer().Post(t.Context(), in)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := looptest.NewBus(t)
	j := NewJoined(tm, time.Now)
	b.StartService(j)
	b.Next()
	jumps(t, b, j, joinedTimer, joinedTimer)
}

// A task that is retried later is offered at that time.
func TestOffersAfterJump(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	m := &members[0]
	m.Observed, m.Activity, m.Role, m.Spec.Agent = team.Running, team.Idle, team.RoleExecutor, "claude"
	retry := ledger.RetryPolicy{MaxRetries: 1, RetryBackoff: ahead.Milliseconds()}
	if _, err := tm.Ledger.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "s", Description: "d", RetryPolicy: retry}}, team.LeadName); err != nil {
		t.Fatal(err)
	}
	task, err := tm.Ledger.Claim(t.Context(), ledger.ClaimIn{Owner: m.SessionKey})
	if err == nil {
		err = tm.Ledger.Fail(t.Context(), ledger.TaskRef{ID: task.ID, Owner: m.SessionKey, Attempt: task.Attempt}, ledger.Result{})
	}
	if err != nil {
		t.Fatal(err)
	}
	b := looptest.NewBus(t, members...)
	o := NewOffers(tm, time.Second, time.Hour)
	b.StartService(o)
	b.Fire("offers")
	b.Next()
	jumps(t, b, o, "offers again", "offers")
}

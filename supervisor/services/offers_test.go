package services

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// A member gets no offers if it is not known to be idle, is planning, is read-only, or is a
// built-in worker.
func TestWhoHearsOfReadyTasks(t *testing.T) {
	t.Parallel()
	idle := loop.Member{Member: ledger.Member{Observed: team.Running, Desired: team.WantRunning, Activity: team.Idle, Role: team.RoleExecutor,
		Spec: team.MemberSpec{Agent: "claude"}}}
	if !takesOffers(idle) {
		t.Fatal("an idle agent is not told")
	}
	for what, change := range map[string]func(*loop.Member){
		"works":            func(m *loop.Member) { m.Activity = team.Working },
		"is not known":     func(m *loop.Member) { m.Activity = team.ActivityUnknown },
		"waits":            func(m *loop.Member) { m.Activity = team.Waiting },
		"has ended":        func(m *loop.Member) { m.Observed = team.Exited },
		"is to stop":       func(m *loop.Member) { m.Desired = team.WantStopped },
		"is frozen":        func(m *loop.Member) { m.Paused = true },
		"is being stopped": func(m *loop.Member) { m.Busy = true },
		"reviews":          func(m *loop.Member) { m.Role = team.RoleReviewer },
		"observes":         func(m *loop.Member) { m.Role = team.RoleObserver },
		"plans":            func(m *loop.Member) { m.Spec.Mode = team.ModePlan },
		"delegates":        func(m *loop.Member) { m.Spec.Mode = team.ModeDelegate },
		"claims by itself": func(m *loop.Member) { m.Spec.Agent = team.AgentWorker },
	} {
		row := idle
		change(&row)
		if takesOffers(row) {
			t.Errorf("one that %s is told", what)
		}
	}
}

// A ready task is offered to one idle member, and to another one only if the first has not begun a
// turn for a while; a member that has ended a turn may get another offer.
func TestOffers(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann", "bob")
	for i := range members {
		m := &members[i]
		m.Observed, m.Activity, m.Role, m.Spec.Agent = team.Running, team.Idle, team.RoleExecutor, "claude"
	}
	members[0].ActivityAt, members[1].ActivityAt = 1, 2
	b := looptest.NewBus(t, members...)
	o := NewOffers(tm, time.Second, time.Hour)
	b.StartService(o)
	b.Fire("offers") // nothing is ready
	b.Next()
	if _, err := tm.Ledger.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "s", Description: "d"}}, team.LeadName); err != nil {
		t.Fatal(err)
	}
	told := func(name string) int {
		t.Helper()
		list, err := tm.Ledger.Messages(t.Context(), ledger.MessageFilter{Recipient: name})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	look := func(ann, bob int) {
		t.Helper()
		o.Event(ledger.Event{What: "task.created"})
		b.Fire("offers")
		if o.looking {
			b.Next()
		}
		if told("ann") != ann || told("bob") != bob {
			t.Fatalf("ann was told %d times, bob %d; want %d and %d", told("ann"), told("bob"), ann, bob)
		}
	}
	look(1, 0) // ann has been idle longest
	if task := o.told[members[0].SessionKey].task; task != "1" || b.Periods["offers again"] != time.Hour {
		t.Errorf("told of %q, again in %s", task, b.Periods["offers again"])
	}
	look(1, 0) // it is claimed for an hour
	was := o.told[members[0].SessionKey]
	was.at = was.at.Add(-2 * time.Hour)
	o.told[members[0].SessionKey] = was
	look(1, 1) // ann has not begun it
	o.Event(ledger.Event{What: "member.activity", ID: "ann", After: string(team.Idle), At: time.Now().UnixMilli()})
	if _, still := o.told[members[0].SessionKey]; still {
		t.Error("the end of a turn is not seen")
	}
	b.List = b.List[:1]
	o.Looked(true)
	if len(o.told) != 0 {
		t.Errorf("those that have left are remembered: %v", o.told)
	}
	b.List[0].TurnError, b.List[0].ActivityAt = "bad thing", time.Now().UnixMilli()
	b.Fire("offers")
	if o.looking || !b.Armed("offers after a failure") || !strings.Contains(b.List[0].TurnError, "bad") {
		t.Error("a member whose turn has just failed is told")
	}
}

// TestOffersWithoutABudget checks that an offer does not read what the members have used where no
// budget bounds it: nobody can read it here.
func TestOffersWithoutABudget(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	m := &members[0]
	m.Observed, m.Activity, m.Role, m.Spec.Agent = team.Running, team.Idle, team.RoleExecutor, "claude"
	if err := tm.Ledger.Set(t.Context(), quota.SettingUsage, "unreadable"); err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Ledger.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "s", Description: "d"}}, team.LeadName); err != nil {
		t.Fatal(err)
	}
	b := looptest.NewBus(t, members...)
	o := NewOffers(tm, time.Second, time.Hour)
	b.StartService(o)
	b.Fire("offers")
	b.Next()
	if o.told[m.SessionKey].task != "1" {
		t.Errorf("told %v", o.told)
	}
}

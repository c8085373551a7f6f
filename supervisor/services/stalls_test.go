package services

import (
	"os"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// TestStallsAreTold: a member that works and shows nothing is told once, also by the supervisor that
// follows one which was killed, and again after it has shown something.
func TestStallsAreTold(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann", "bob")
	log := func(name string, ago time.Duration) {
		t.Helper()
		b := tm.Layout.Bundle(name)
		if err := os.MkdirAll(string(b), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.Log(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(b.Log(), time.Time{}, time.Now().Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range members {
		m := &members[i]
		m.Observed, m.Activity = team.Running, team.Working
		log(m.Name, time.Minute)
	}
	b := looptest.NewBus(t, members...)
	told := func(want int) {
		t.Helper()
		list, err := tm.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: team.EventMemberStalled})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != want {
			t.Fatalf("told %d times; want %d: %+v", len(list), want, list)
		}
		for _, e := range list {
			n, ok := noticeOf("t", e)
			if !ok || e.ID != "ann" || n.notice.Title != "teamctl t: ann works and has shown nothing for ten minutes" {
				t.Errorf("%+v tells %+v", e, n)
			}
		}
	}
	s := NewStalls(tm)
	b.StartService(s)
	told(0)
	log("ann", state.StalledAfter+time.Minute)
	b.Fire("stalls")
	b.Next()
	told(1)
	b.Fire("stalls")
	told(1)
	b.StartService(NewStalls(tm)) // the one before was killed
	b.Next()
	told(1)
	log("ann", 0)
	b.Fire("stalls")
	log("ann", state.StalledAfter+time.Second)
	b.Fire("stalls")
	b.Next()
	told(2)
	for i := range b.List {
		b.List[i].Activity = team.Idle
	}
	b.Fire("stalls")
	if b.Armed("stalls") {
		t.Error("it looks again though nobody works")
	}
	told(2)
}

// A night's sleep of the machine is not told as a member's silence.
func TestStallsAfterSleep(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	m, log := &members[0], tm.Layout.Bundle("ann").Log()
	m.Observed, m.Activity = team.Running, team.Working
	if err := os.MkdirAll(string(tm.Layout.Bundle("ann")), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	silent := func(d time.Duration) {
		if err := os.Chtimes(log, time.Time{}, time.Now().Add(-d)); err != nil {
			t.Fatal(err)
		}
	}
	silent(9 * time.Minute)
	b := looptest.NewBus(t, members...)
	s := NewStalls(tm)
	b.StartService(s)
	silent(8 * time.Hour) // the machine slept
	s.Jumped(0)
	b.Done()
	list, err := tm.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: team.EventMemberStalled})
	if d := b.Periods["stalls"]; err != nil || len(list) != 0 || d < state.StalledAfter-time.Minute || d > state.StalledAfter {
		t.Errorf("told %d times, %v; looks again in %s", len(list), err, d)
	}
}

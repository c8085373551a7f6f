package services

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// The end of a turn and of a task records the running totals once, and only for members whose
// program reports usage.
func TestTotals(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann", "mute")
	b := looptest.NewBus(t, members...)
	s := NewTotals(tm)
	b.StartService(s)
	uses := func(tokens int64) {
		t.Helper()
		err := tm.Ledger.Set(t.Context(), quota.SettingUsage, map[string]quota.Spent{
			members[0].SessionKey: {Name: "ann", Agent: "claude", Conversations: map[string]team.Usage{"c": {InputTokens: tokens, CostUSD: 0.5, CostKnown: true}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	turn := func(name string) {
		s.Event(ledger.Event{What: team.EventMemberActivity, ID: name, Before: string(team.Working), After: string(team.Idle)})
	}
	write := func() { b.Fire("totals"); b.Next() }

	uses(100)
	turn("ann")
	turn("mute")
	s.Event(ledger.Event{What: team.EventTaskCompleted, Who: "ann", ID: "5"})
	s.Event(ledger.Event{What: team.EventMemberActivity, ID: "ann", Before: string(team.Idle), After: string(team.Working)})
	write()
	turn("ann") // without usage
	write()
	uses(300)
	turn("ann")
	write()
	s.Event(ledger.Event{What: team.EventTaskFailed, Who: "gone", ID: "6"})
	write()

	past := quota.Spent{Conversations: map[string]team.Usage{"c": {InputTokens: 400, CostUSD: 0.5, CostKnown: true}}}
	for name, v := range map[string]any{quota.SettingPast(members[0].SessionKey): past, quota.SettingUsage: nil} {
		if err := tm.Ledger.Set(t.Context(), name, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := tm.Ledger.RemoveMember(t.Context(), members[0].SessionKey); err != nil {
		t.Fatal(err)
	}
	s.Event(ledger.Event{What: team.EventTaskCompleted, Who: "ann", ID: "7"}) // it has left meanwhile
	write()

	list, err := tm.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: team.EventUsageCounted})
	if err != nil {
		t.Fatal(err)
	}
	type counted struct {
		Who, Task string
		Tokens    int64
		Cost      float64
	}
	var got []counted
	for _, e := range list {
		var d struct {
			Session string
			Task    string
			team.Usage
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		if d.Session != members[0].SessionKey {
			t.Errorf("the session is %q", d.Session)
		}
		got = append(got, counted{e.ID, d.Task, d.InputTokens, d.CostUSD})
	}
	if diff := cmp.Diff([]counted{{"ann", "5", 100, 0.5}, {"ann", "", 300, 0.5}, {"ann", "7", 400, 0.5}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

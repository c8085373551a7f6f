package quota

import (
	"encoding/json"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// TestBounds checks that Bounds reads the usage of turns where a budget of the team or of a member
// needs it, and not otherwise.
func TestBounds(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	l, session := tm.Ledger, members[len(members)-1].SessionKey
	if _, err := l.OpenSession(t.Context(), ledger.NewSession{Key: session, Member: session}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.TakeIn(t.Context(), ledger.TakeIn{Session: session, Inputs: []ledger.Input{{NewEntry: ledger.NewEntry{Kind: ledger.EntryUser, Content: "go"}}}}); err != nil {
		t.Fatal(err)
	}
	turn, err := l.ClaimTurn(t.Context(), ledger.ClaimTurnIn{Member: session, Generation: "g"})
	if err != nil || turn == nil {
		t.Fatal(turn, err)
	}
	if _, err := l.EndTurn(t.Context(), ledger.TurnEnd{Ref: turn.Job.Ref(), State: team.TurnDone, Usage: json.RawMessage(`{"inputTokens":7}`)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		budgets team.Budgets
		tokens  int64
	}{
		{team.Budgets{}, 0},
		{team.Budgets{Resume: true}, 0},
		{team.Budgets{Team: team.Budget{Tokens: 100}}, 7},
		{team.Budgets{Members: map[string]team.Budget{"ann": {Turns: 3}}}, 7},
	} {
		if err := l.Set(t.Context(), SettingBudgets, c.budgets); err != nil {
			t.Fatal(err)
		}
		q, err := Bounds(t.Context(), l)
		if got := q.Team().InputTokens; err != nil || got != c.tokens {
			t.Errorf("%+v: %d tokens, want %d (%v)", c.budgets, got, c.tokens, err)
		}
		if all, err := Read(t.Context(), l); err != nil || all.Team().InputTokens != 7 {
			t.Errorf("Read: %+v, %v", all, err)
		}
	}
}

// TestWhoReadsUsage checks that what the members have used is read only where the answer depends on
// it: here nobody can read it.
func TestWhoReadsUsage(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	l, session := tm.Ledger, members[0].SessionKey
	set := func(name string, v any) {
		t.Helper()
		if err := l.Set(t.Context(), name, v); err != nil {
			t.Fatal(err)
		}
	}
	set(SettingUsage, "unreadable")
	if _, err := Read(t.Context(), l); err == nil {
		t.Fatal("it can be read")
	}
	for _, c := range []struct {
		budgets team.Budgets
		reads   bool
	}{
		{team.Budgets{Resume: true}, false},
		{team.Budgets{Team: team.Budget{Tokens: 100}}, true},
		{team.Budgets{Members: map[string]team.Budget{"ann": {Turns: 3}}}, true},
	} {
		set(SettingBudgets, c.budgets)
		if q, err := Limits(t.Context(), l); err != nil || q.Budgets.Resume != c.budgets.Resume {
			t.Errorf("%+v: limits: %+v, %v", c.budgets, q, err)
		}
		if _, err := Bounds(t.Context(), l); (err != nil) != c.reads {
			t.Errorf("%+v: bounds: %v", c.budgets, err)
		}
		if why, err := Blocked(t.Context(), l, session); (err != nil) != c.reads || why != nil {
			t.Errorf("%+v: blocked: %v, %v", c.budgets, why, err)
		}
	}
}

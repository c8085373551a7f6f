package look

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestUsageOfTasks checks that the usage has tasks with their subjects, days, and what belongs to no task,
// also in what was recorded since it was read last.
func TestUsageOfTasks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	tm := newMailTeam(t, "ann")
	if _, err := tm.Ledger.CreateTasks(ctx, []ledger.NewTask{{Subject: "one"}, {Subject: "two"}}, "lead"); err != nil {
		t.Fatal(err)
	}
	ann, err := tm.Ledger.Member(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	uses := func(task string, tokens int64) {
		t.Helper()
		now := team.Usage{InputTokens: tokens, CostUSD: float64(tokens) / 100, CostKnown: true}
		err := tm.Ledger.Set(ctx, "usage", map[string]any{ann.SessionKey: map[string]any{"name": "ann", "agent": "claude", "conversations": map[string]team.Usage{"c": now}}}) // as package quota does
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(struct {
			Task string `json:"task,omitempty"`
			team.Usage
		}{task, now})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tm.Ledger.Event(ctx, ledger.Event{Who: "ann", What: team.EventUsageCounted, ID: "ann", Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	var points Points
	is := func(want ...string) {
		t.Helper()
		u, err := Usage(ctx, tm, &points)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range u.Tasks {
			got = append(got, fmt.Sprintf("%s %s %s %s", x.Name, x.Subject, x.Words(), x.Money()))
		}
		got = append(got, "rest "+u.Rest.Words()+" "+u.Rest.Money())
		tokens := int64(0) // the day may change meanwhile
		for _, x := range u.Days {
			tokens += x.Tokens
		}
		got = append(got, fmt.Sprint(tokens))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	is("rest - -", "0")
	uses("", 100)
	uses("2", 150)
	is("2 two 50 $0.50", "rest 100 $1.00", "150")
	uses("1", 350)
	is("1 one 200 $2.00", "2 two 50 $0.50", "rest 100 $1.00", "350")
}

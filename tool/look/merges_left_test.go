package look

import (
	"fmt"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
)

// TestMergesLeft checks that a merge with conflicts waits for a person, however many have landed since, until a task
// was made of it or the same branch has been merged.
func TestMergesLeft(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	tm := newMailTeam(t, "ann")
	merge := func(branch string, p ledger.MergePatch) {
		t.Helper()
		rows, err := tm.Ledger.EnqueueMerges(ctx, []ledger.Merge{{Member: "ann", Session: "agent:ann", Branch: branch, Tip: "1234567", Target: "main", Strategy: "merge"}})
		if err != nil {
			t.Fatal(err)
		}
		p.IDs = []int64{rows[0].ID}
		for _, p := range []ledger.MergePatch{{IDs: p.IDs, State: ledger.MergeGating}, p} {
			if _, err := tm.Ledger.MoveMerges(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	be := func(when string, want ...string) {
		t.Helper()
		needs, err := Needs(ctx, tm)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range needs {
			if n.Kind == view.NeedMerge {
				got = append(got, n.Text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q; want %q", when, got, want)
		}
	}
	merge("ann", ledger.MergePatch{State: ledger.MergeConflict, Files: []string{"a.go"}})
	merge("bob", ledger.MergePatch{State: ledger.MergeRed, Why: "make: exit 2", Task: &ledger.NewTask{Subject: "mend it"}})
	for i := range mergesShown + 10 {
		merge(fmt.Sprintf("other-%d", i), ledger.MergePatch{State: ledger.MergeLanded})
	}
	be("long after", "ann conflicts with main in a.go")
	merge("ann", ledger.MergePatch{State: ledger.MergeLanded})
	be("once it is merged")
}

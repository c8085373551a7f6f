package look

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestGateLog checks that the output of a gate is followed until its merge has ended, from before it runs.
func TestGateLog(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	tm := newMailTeam(t, "ann")
	rows, err := tm.Ledger.EnqueueMerges(ctx, []ledger.Merge{{Member: "ann", Session: "agent:ann", Branch: "ann", Tip: "1234567", Target: "main", Strategy: "merge"}})
	if err != nil {
		t.Fatal(err)
	}
	id := rows[0].ID
	moves := func(s ledger.MergeState, log string) {
		t.Helper()
		if _, err := tm.Ledger.MoveMerges(ctx, ledger.MergePatch{IDs: []int64{id}, State: s, Log: log}); err != nil {
			t.Fatal(err)
		}
	}
	type shown struct {
		m view.Merge
		p view.LogPart
	}
	seen, end := make(chan shown, 100), make(chan error, 1)
	go func() { end <- GateLog(ctx, tm, id, func(m view.Merge, p view.LogPart) { seen <- shown{m, p} }) }()
	until := func(state, line string) {
		t.Helper()
		for {
			select {
			case x := <-seen:
				if x.m.State == state && (x.p.Missing == line || slices.Contains(x.p.Lines, line)) {
					return
				}
			case err := <-end:
				t.Fatalf("it ended before %s %q: %v", state, line, err)
			}
		}
	}
	until("queued", "no gate has run yet")
	log := filepath.Join(t.TempDir(), "gate.log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	prints := func(text string) {
		t.Helper()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	moves(ledger.MergeGating, log)
	prints("$ go test\n")
	until("gating", "$ go test")
	prints("\x1b[31mFAIL\x1b[0m\n")
	until("gating", "FAIL")
	moves(ledger.MergeRed, "")
	until("red", "FAIL")
	if err := <-end; err != nil {
		t.Error(err)
	}
	if err := GateLog(ctx, tm, id+1, func(view.Merge, view.LogPart) {}); team.ReasonOf(err) != team.ReasonMergeNotFound {
		t.Errorf("of an unknown merge: %v", err)
	}
}

package tool

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func (t *Team) mergeLock() string { return filepath.Join(t.Layout.Locks(), ".merge.guard") }

// Merging reports whether a process is working on the queue. If none is and the queue is not
// empty, that process was killed.
func (t *Team) Merging() (bool, error) { return filelock.IsHeld(t.mergeLock()) }

// MergeQueue returns queued and running merges, and with ended also the newest finished ones.
func (t *Team) MergeQueue(ctx context.Context, ended bool, limit int) ([]ledger.Merge, error) {
	return t.Ledger.Merges(ctx, ended, limit)
}

// MergeCancel cancels queued merges of the named members, or all if names is empty, and returns
// them. Merges in progress continue.
//
// Errors: not_found for a name that neither the queue nor the roster has, and merge_under_way
// (conflict) for one whose merge is in progress; the others are cancelled.
func (t *Team) MergeCancel(ctx context.Context, c Caller, names []string) ([]ledger.Merge, error) {
	if err := t.may(ctx, c, OpWorktrees); err != nil {
		return nil, err
	}
	open, err := t.Ledger.Merges(ctx, false, 0)
	if err != nil {
		return nil, err
	}
	asked := map[string]bool{}
	for _, name := range names {
		if !slices.ContainsFunc(open, func(m ledger.Merge) bool { return m.Member == name }) {
			m, err := t.Member(ctx, name)
			if err != nil {
				return nil, err
			}
			name = m.Name
		}
		asked[name] = true
	}
	p := ledger.MergePatch{State: ledger.MergeCanceled, Why: "taken back by " + c.Name}
	for _, m := range open {
		if len(names) == 0 || asked[m.Member] {
			p.IDs = append(p.IDs, m.ID)
		}
	}
	canceled := []ledger.Merge{}
	if len(p.IDs) == 0 {
		return canceled, nil
	}
	moved, err := t.as(c).MoveMerges(ctx, p)
	for _, m := range moved {
		switch {
		case m.State == ledger.MergeCanceled:
			canceled = append(canceled, m)
		case m.State.Open() && len(names) > 0 && err == nil:
			err = team.Errorf(team.CodeConflict, "the merge of %s is in progress (%s) and continues", m.Member, m.State).
				WithReason(team.ReasonMergeUnderWay).WithHint("teamctl merge queue --watch, or end the teamctl merge that does it")
		}
	}
	return canceled, err
}

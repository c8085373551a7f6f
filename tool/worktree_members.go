package tool

import (
	"context"
	"os"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
)

// treeMembers returns the members with a worktree of their own: the named ones, or all on the
// roster, and with left those that have left one that still exists.
func (t *Team) treeMembers(ctx context.Context, names []string, left bool) ([]ledger.Member, error) {
	own := func(m ledger.Member) bool { return m.Worktree != "" && m.Spec.WorktreeMode == "own" }
	var out []ledger.Member
	if len(names) == 0 {
		all, err := t.Ledger.Members(ctx, false)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if own(m) {
				out = append(out, m)
			}
		}
		if left {
			gone, err := t.leftTrees(ctx)
			if err != nil {
				return nil, err
			}
			out = append(out, gone...)
		}
		return out, nil
	}
	for _, n := range names {
		m, err := t.Member(ctx, n)
		if err != nil {
			return nil, err
		}
		if !own(m) {
			return nil, team.Errorf(team.CodeInvalid, "%s has no worktree of its own", m.Name).WithReason(team.ReasonNoWorktree)
		}
		out = append(out, m)
	}
	return out, nil
}

// leftTrees returns the members that have left a worktree that still exists, in the order of
// joining.
func (t *Team) leftTrees(ctx context.Context) ([]ledger.Member, error) {
	all, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(trees.Left(all), func(m ledger.Member) bool {
		_, err := os.Lstat(m.Worktree)
		return err != nil
	})
	sortJoined(left)
	return left, nil
}

// Left returns the former members that ran or had joined: of those with the same name and worktree
// only the last, and none whose worktree a current member uses. They are in the order of joining.
func (t *Team) Left(ctx context.Context) ([]ledger.Member, error) {
	all, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return nil, err
	}
	type life struct{ name, worktree string }
	newest := map[life]int64{}
	for _, m := range all {
		at := life{m.Name, m.Worktree}
		newest[at] = max(newest[at], m.JoinedAt)
	}
	var out []ledger.Member
	for _, m := range all {
		ran := m.StartedAt != 0 || team.KindOf(m.Spec.Agent).External
		if m.RemovedAt != 0 && ran && newest[life{m.Name, m.Worktree}] == m.JoinedAt {
			out = append(out, m)
		}
	}
	sortJoined(out)
	return out, nil
}

func sortJoined(ms []ledger.Member) {
	slices.SortStableFunc(ms, func(a, b ledger.Member) int { return int(a.JoinedAt - b.JoinedAt) })
}

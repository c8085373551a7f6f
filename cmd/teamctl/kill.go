package main

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/tool"
)

// leftover is a killed member whose work remains.
type leftover struct{ member ledger.Member }

// workOf returns the named members that have a worktree of their own.
func workOf(ctx context.Context, t *tool.Team, names []string) []leftover {
	var out []leftover
	for _, n := range names {
		if m, err := t.Member(ctx, n); err == nil && m.Worktree != "" && m.Branch != "" {
			out = append(out, leftover{m})
		}
	}
	return out
}

// leftWork reports where the work of killed members is, and takes a checkpoint of it, so that
// uncommitted changes can be restored whatever happens to the worktree.
func (a *app) leftWork(ctx context.Context, t *tool.Team, c tool.Caller, list []leftover) {
	for _, w := range list {
		ref, err := t.CheckpointOf(context.WithoutCancel(ctx), c, w.member, "killed by "+c.Name)
		switch {
		case a.out.json && err == nil:
		case err != nil:
			a.out.note("no checkpoint of %s: %v; its work is in %s", w.member.Name, err, w.member.Worktree)
		default:
			a.out.line("%s: its work is on %s in %s, checkpoint %s", w.member.Name, w.member.Branch, printable(w.member.Worktree), ref)
		}
	}
}

package tool

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/worktree"
)

// save takes a checkpoint of a member's worktree, and where it is a new one tells
// of files that others have changed too. An unchanged worktree costs one git status.
func (t *Team) save(ctx context.Context, r *worktree.Repo, m ledger.Member, why string) (ref string, fresh bool, err error) {
	ref, fresh, err = r.Checkpoint(ctx, m.Worktree, t.Layout.Key, m.Name, why)
	if err != nil || !fresh {
		return ref, fresh, err
	}
	return ref, fresh, t.NoteChanges(ctx, r, m)
}

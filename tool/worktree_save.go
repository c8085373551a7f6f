package tool

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
)

// saver returns a Saver, which takes checkpoints in the name of the worktrees' members.
func (t *Team) saver() services.Saver {
	return services.Saver{Layout: t.Layout, Ledger: t.Ledger, Via: t.via}
}

// SaveTree takes a checkpoint of a member's own worktree, and warns of files that others have
// changed too.
func (t *Team) SaveTree(ctx context.Context, m ledger.Member, why string) error {
	r, err := t.repo(ctx, m.Spec.Repo)
	if err != nil {
		return err
	}
	_, _, err = t.saver().Save(ctx, r, m, why)
	return err
}

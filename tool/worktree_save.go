package tool

import (
	"github.com/teamctl/teamctl/supervisor/services"
)

// saver returns a Saver, which takes checkpoints in the name of the worktrees' members.
func (t *Team) saver() services.Saver {
	return services.Saver{Layout: t.Layout, Ledger: t.Ledger, Via: t.via}
}

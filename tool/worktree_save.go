package tool

import (
	"github.com/teamctl/teamctl/supervisor/services"
)

// saver takes checkpoints in the name of the members whose worktrees they are.
func (t *Team) saver() services.Saver {
	return services.Saver{Layout: t.Layout, Ledger: t.Ledger, Via: t.via}
}

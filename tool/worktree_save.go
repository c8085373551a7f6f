package tool

import "github.com/teamctl/teamctl/supervisor"

// saver takes checkpoints in the name of the members whose worktrees they are.
func (t *Team) saver() supervisor.Saver {
	return supervisor.Saver{Layout: t.Layout, Ledger: t.Ledger, Via: t.via}
}

package tool

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// usedLimit bounds a renewal: the caller wanted something else.
const usedLimit = 2 * time.Second

// Used renews what the caller holds, for it has just used a task of its own. The
// supervisor does so for members whose process it sees; the lead and programs that
// joined by themselves have nobody else. Failing is not told: whoever has lost a task
// by it is told when it writes to it.
func (t *Team) Used(ctx context.Context, c Caller, task ledger.Task) {
	mine := task.Owner != "" && (task.Owner == c.Session || c.Session == "" && task.OwnerName == c.Name)
	held := task.Status == team.TaskClaimed || task.Status == team.TaskInProgress
	if !mine || !held || task.LeaseUntil == 0 || time.Until(time.UnixMilli(task.LeaseUntil)) > ledger.Lease/2 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), usedLimit)
	defer cancel()
	_, _ = t.as(c).RenewLeases(ctx, []string{task.Owner}, ledger.Lease)
}

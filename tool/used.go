package tool

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// usedLimit bounds a renewal, which is not the caller's purpose.
const usedLimit = 2 * time.Second

// Used renews the caller's leases, since it has just used one of its tasks. The supervisor does
// that for members whose process it observes; the lead and joined programs have only this.
// Failures are not reported: a caller that has lost a task is notified when it writes to it.
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

package tool

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Runtime is what is known of a member beyond its row: the fields that clients of the runtime
// record expect, and whether the member has stalled.
type Runtime struct {
	Idle                 bool  `json:"isIdle"` // it has reported so: unknown is not idle
	AwaitingPlanApproval bool  `json:"awaitingPlanApproval"`
	ShutdownRequested    bool  `json:"shutdownRequested"`      // its desired state is stopped and it is alive
	PendingMessages      int   `json:"pendingMessages"`        // sent to it, without evidence that its agent has them
	Tokens               int64 `json:"tokens,omitempty"`       // that it has used, if its CLI reports that
	StalledSince         int64 `json:"stalledSince,omitempty"` // time of its last sign, if that is long ago
}

// Runtimes returns the Runtime of members, in their order.
func (t *Team) Runtimes(ctx context.Context, members []ledger.Member) ([]Runtime, error) {
	waiting, err := t.Ledger.WaitingCounts(ctx)
	if err != nil {
		return nil, err
	}
	plans, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending, Kind: ledger.ApprovePlan})
	if err != nil {
		return nil, err
	}
	asks := map[string]bool{}
	for _, p := range plans {
		asks[p.Session] = true
	}
	q, err := quota.Read(ctx, t.Ledger)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	out := make([]Runtime, len(members))
	for i, m := range members {
		used, _, err := q.UsedBy(ctx, t.Ledger, m)
		if err != nil {
			return nil, err
		}
		out[i] = Runtime{
			Idle:                 m.Observed == team.Running && m.Activity == team.Idle,
			AwaitingPlanApproval: asks[m.SessionKey] || m.WaitsFor == team.WaitPlan,
			ShutdownRequested:    m.Observed.Alive() && m.Desired == team.WantStopped,
			PendingMessages:      waiting[m.SessionKey],
			Tokens:               used.Tokens(),
		}
		if since := state.Stalled(t.Layout, m, now); !since.IsZero() {
			out[i].StalledSince = since.UnixMilli()
		}
	}
	return out, nil
}

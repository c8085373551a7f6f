package tool

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// Runtime is what is known of a member beside its row: what clients of the runtime record
// of document 001 look for (R118), and whether it has stalled.
type Runtime struct {
	Idle                 bool  `json:"isIdle"` // it has said so: unknown is not idle
	AwaitingPlanApproval bool  `json:"awaitingPlanApproval"`
	ShutdownRequested    bool  `json:"shutdownRequested"`      // it is wanted stopped and lives
	PendingMessages      int   `json:"pendingMessages"`        // sent to it, and not known to have reached its agent
	Tokens               int64 `json:"tokens,omitempty"`       // that it has used, where its CLI tells
	StalledSince         int64 `json:"stalledSince,omitempty"` // its last sign, where that is long ago
}

// Runtimes is the Runtime of members, in their order.
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
		used, _ := q.Used(m.SessionKey)
		out[i] = Runtime{
			Idle:                 m.Observed == team.Running && m.Activity == team.Idle,
			AwaitingPlanApproval: asks[m.SessionKey] || m.WaitsFor == team.WaitPlan,
			ShutdownRequested:    m.Observed.Alive() && m.Desired == team.WantStopped,
			PendingMessages:      waiting[m.SessionKey],
			Tokens:               used.Tokens(),
		}
		if since := Stalled(t.Layout, m, now); !since.IsZero() {
			out[i].StalledSince = since.UnixMilli()
		}
	}
	return out, nil
}

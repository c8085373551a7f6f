// Package approval says what answers a request of a member: the team's rules where they decide,
// and with what a person has approved it.
package approval

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// GrantedWith is what an approval was given with, by the answer that was posted. It is empty
// unless the request was approved.
func GrantedWith(ctx context.Context, l *ledger.Ledger, a ledger.Approval) (g team.Granted, err error) {
	kind := map[ledger.ApprovalKind]team.Kind{
		ledger.ApprovePermission: team.KindPermissionResponse, ledger.ApprovePlan: team.KindPlanApprovalResponse,
	}[a.Kind]
	if kind == "" || a.State != ledger.ApprovalApproved {
		return g, nil
	}
	ms, err := l.Messages(ctx, ledger.MessageFilter{Kind: kind, RequestID: a.RequestID, Recipient: a.Name, Newest: true, Limit: 1})
	if err != nil || len(ms) == 0 {
		return g, err
	}
	switch f, _ := inbox.Parse(ms[0].Text); f := f.(type) {
	case inbox.PermissionResponse:
		return team.Granted{Input: orNothing(f.UpdatedInput), Updates: orNothing(f.PermissionUpdates)}, nil
	case inbox.PlanApprovalResponse:
		g.Mode, err = team.ParseMode(f.PermissionMode)
		return g, err
	}
	return g, nil
}

func orNothing(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// OtherInput tells an agent that it may not do what it asked for, and what it may do.
func OtherInput(input json.RawMessage) string {
	return "it was approved with another input only: " + string(input)
}

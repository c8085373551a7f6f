// Package approval determines the answers to members' requests: the decision of the team's rules,
// and the contents of an approval.
package approval

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// GrantedWith returns the contents of an approval from the posted answer. They are empty unless
// the request was approved.
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

// OtherInput returns the message to an agent that only another input was approved.
func OtherInput(input json.RawMessage) string {
	return "it was approved with another input only: " + string(input)
}

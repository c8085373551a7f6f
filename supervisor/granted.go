package supervisor

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Granted is what an approval was given with.
type Granted struct {
	// Input is what a permission may be used with instead of what was asked for; empty
	// for as it was asked. Whoever cannot bring it must not let the request through: the
	// person has approved something else.
	Input json.RawMessage
	// Updates are what is to be allowed from now on too, a list in the words of the
	// program that asked. Whoever cannot bring them leaves them out: it asks again.
	Updates json.RawMessage
	Mode    team.Mode // that the member of an approved plan goes on in; "" otherwise
}

// GrantedWith reads it from the answer that was posted; of anything that was not
// approved it is empty.
func GrantedWith(ctx context.Context, l *ledger.Ledger, a ledger.Approval) (g Granted, err error) {
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
		return Granted{Input: orNothing(f.UpdatedInput), Updates: orNothing(f.PermissionUpdates)}, nil
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

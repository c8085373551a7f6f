package tool

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/team"
)

// AtScreen is a member that waits for a person at its own screen: for trust in a directory, a
// login, or a dialog that is not in the queue. It can be answered only there; teamctl types
// nothing.
type AtScreen struct {
	Name     string       `json:"name"`
	WaitsFor team.WaitFor `json:"waits_for"`
	Reason   string       `json:"reason"` // with the lines that show it
	Since    int64        `json:"since"`  // Unix ms
	Attach   string       `json:"attach"` // command that attaches to the screen
}

// AtScreens returns the members waiting for something not among the approvals, by name.
func (t *Team) AtScreens(ctx context.Context) ([]AtScreen, error) {
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return nil, err
	}
	pending, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending})
	if err != nil {
		return nil, err
	}
	out := []AtScreen{}
	for _, m := range members {
		if m.Observed != team.Running || m.Activity != team.Waiting ||
			slices.ContainsFunc(pending, func(a ledger.Approval) bool { return a.Session == m.SessionKey && approval.Answers(a, m) }) {
			continue
		}
		out = append(out, AtScreen{m.Name, m.WaitsFor, m.Reason, m.ActivityAt, "teamctl attach " + m.Name})
	}
	return out, nil
}

// AskByHook is the prefix of request ids for requests by a hook of the program.
const AskByHook = approval.HookRequest

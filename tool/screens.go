package tool

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

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
			slices.ContainsFunc(pending, func(a ledger.Approval) bool { return a.Session == m.SessionKey && answers(a, m) }) {
			continue
		}
		out = append(out, AtScreen{m.Name, m.WaitsFor, m.Reason, m.ActivityAt, "teamctl attach " + m.Name})
	}
	return out, nil
}

// answers reports whether answering the approval request ends the member's wait: its screen showed
// nothing but that request, or its program made it.
func answers(a ledger.Approval, m ledger.Member) bool {
	if !asksFor(m.WaitsFor) {
		return m.WaitsFor == "" && m.Reason == ""
	}
	return byProgram(a) || team.KindOf(m.Spec.Agent).Sessions // which asks by the queue alone
}

// asksFor reports whether a wait of this kind has a request in the queue.
func asksFor(w team.WaitFor) bool { return w == team.WaitPermission || w == team.WaitPlan }

// AskByHook is the prefix of request ids for requests by a hook of the program.
const AskByHook = approval.HookRequest

// byProgram reports whether the member's program made the request, and not its agent with one of
// our tools: such a request may be pending while a dialog is on the screen.
func byProgram(a ledger.Approval) bool {
	if a.Message == "" || strings.HasPrefix(a.RequestID, AskByHook) { // in the lead's mailbox, or by a hook
		return true
	}
	var ask team.Ask
	return json.Unmarshal(a.Payload, &ask) == nil && ask.For != ""
}

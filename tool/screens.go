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

// AtScreen is a member that waits for a person at its own screen: for the trust of a
// directory, a login, or a dialog that is not in the queue. Nobody answers it from
// here, and nothing is typed there.
type AtScreen struct {
	Name     string       `json:"name"`
	WaitsFor team.WaitFor `json:"waits_for"`
	Reason   string       `json:"reason"` // with the lines that show it
	Since    int64        `json:"since"`  // Unix ms
	Attach   string       `json:"attach"` // the command that leads there
}

// AtScreens are the members that wait for what is not among the approvals, by name.
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

// answers reports whether an answer to the approval is what a waiting member waits for:
// nothing was seen on its screen but the request, or its program asked for just that.
func answers(a ledger.Approval, m ledger.Member) bool {
	return m.WaitsFor == "" && m.Reason == "" || asksFor(m.WaitsFor) && byProgram(a)
}

// asksFor reports whether what is waited for comes into the queue.
func asksFor(w team.WaitFor) bool { return w == team.WaitPermission || w == team.WaitPlan }

// AskByHook begins the request ids of what a hook of the program asks.
const AskByHook = approval.HookRequest

// byProgram reports whether it was the member's program that asked, and not its agent by
// a tool of ours: that may wait while a dialog stands on the screen.
func byProgram(a ledger.Approval) bool {
	if a.Message == "" || strings.HasPrefix(a.RequestID, AskByHook) { // in the lead's mailbox, or by a hook
		return true
	}
	var ask team.Ask
	return json.Unmarshal(a.Payload, &ask) == nil && ask.For != ""
}

package approval

import (
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Answers reports whether answering the approval request ends the member's wait: its screen showed
// nothing but that request, or its program made it.
func Answers(a ledger.Approval, m ledger.Member) bool {
	if !asksFor(m.WaitsFor) {
		return m.WaitsFor == "" && (m.Reason == "" || m.Reason == team.WhyPaused) // a pause says nothing of the screen
	}
	return byProgram(a) || team.KindOf(m.Spec.Agent).Sessions // which asks by the queue alone
}

// asksFor reports whether a wait of this kind has a request in the queue.
func asksFor(w team.WaitFor) bool { return w == team.WaitPermission || w == team.WaitPlan }

// byProgram reports whether the member's program made the request, and not its agent with one of
// our tools: such a request may be pending while a dialog is on the screen.
func byProgram(a ledger.Approval) bool {
	if a.Message == "" || strings.HasPrefix(a.RequestID, HookRequest) { // in the lead's mailbox, or by a hook
		return true
	}
	var ask team.Ask
	return json.Unmarshal(a.Payload, &ask) == nil && ask.For != ""
}

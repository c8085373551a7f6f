package state

import (
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// HasNoHooks reports whether a member's row says that its hooks do not run.
func HasNoHooks(m ledger.Member) bool {
	return m.Observed == team.Running && m.Reason == team.WhyNoHooks
}

// HasSilent reports whether a member's row says that its program reports no state.
func HasSilent(m ledger.Member) bool {
	return m.Observed == team.Running && strings.HasPrefix(m.Reason, team.WhySilent)
}

// Paused reports whether a member is paused.
func Paused(m ledger.Member) bool {
	return m.Observed == team.Running && m.Reason == team.WhyPaused
}

// Unknown reports whether the supervisor cannot determine the state of a member's process:
// Observed is then the last known state.
func Unknown(m ledger.Member) bool {
	return m.Observed.Alive() && strings.HasPrefix(m.Reason, team.WhyUnknown)
}

package state

import (
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// NoHooksReason is the Reason of a running member whose program does not run its hooks, unless
// there is another reason.
const NoHooksReason = "its program runs no hooks (a setting or a policy may turn them off): mail is typed when it is idle, and states are read off its screen"

// HasNoHooks reports whether a member's row says that its hooks do not run.
func HasNoHooks(m ledger.Member) bool { return m.Observed == team.Running && m.Reason == NoHooksReason }

// PausedReason is the Reason of a paused member.
const PausedReason = "paused"

// Paused reports whether a member is paused.
func Paused(m ledger.Member) bool {
	return m.Observed == team.Running && m.Reason == PausedReason
}

// UnknownReason begins the Reason of a member whose process may or may not be alive.
const UnknownReason = "state unknown, it may live: "

// Unknown reports whether the supervisor cannot determine the state of a member's process:
// Observed is then the last known state.
func Unknown(m ledger.Member) bool {
	return m.Observed.Alive() && strings.HasPrefix(m.Reason, UnknownReason)
}

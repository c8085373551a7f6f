package state

import (
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// NoHooksReason is the Reason of a running member whose program does not run its hooks,
// while there is no other.
const NoHooksReason = "its program runs no hooks (a setting or a policy may turn them off): mail is typed when it is idle, and states are read off its screen"

// HasNoHooks reports whether a member's row says that its hooks do not run.
func HasNoHooks(m ledger.Member) bool { return m.Observed == team.Running && m.Reason == NoHooksReason }

// PausedReason is a paused member's Reason while it is.
const PausedReason = "paused"

// Paused reports that a member was frozen and not let go on.
func Paused(m ledger.Member) bool {
	return m.Observed == team.Running && m.Reason == PausedReason
}

// UnknownReason begins the Reason of a member of whose process it is not known whether it lives.
const UnknownReason = "state unknown, it may live: "

// Unknown reports whether the supervisor cannot tell what has become of a member's
// process: Observed is then what was seen last.
func Unknown(m ledger.Member) bool {
	return m.Observed.Alive() && strings.HasPrefix(m.Reason, UnknownReason)
}

package supervisor

import (
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// NoHooksReason is the Reason of a running member whose program does not run its hooks,
// while there is no other.
const NoHooksReason = "its program runs no hooks (a setting or a policy may turn them off): mail is typed when it is idle, and states are read off its screen"

// HasNoHooks reports whether a member's row says that its hooks do not run.
func HasNoHooks(m ledger.Member) bool { return m.Observed == team.Running && m.Reason == NoHooksReason }

// saysNoHooks reports whether a member's row is to say so.
func saysNoHooks(m ledger.Member, v team.Verdict) bool {
	return v.NoHooks && v.Activity != team.Waiting && v.Activity != team.Limited && !paused(m)
}

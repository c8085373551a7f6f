package tool

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// carry sees to it that somebody brings what was posted to agents that do not read
// their mailbox: a supervisor that was killed is started again. The message is
// safe in any case, so what fails here is told to nobody: the next command tries again.
func (t *Team) carry(ctx context.Context, ds []ledger.Delivery) {
	if t.Env.Dial == nil {
		return
	}
	for _, d := range ds {
		m, err := t.Ledger.MemberBySession(ctx, d.Session)
		if err == nil && carried(m) {
			_, _ = t.Env.Dial(ctx, t.Layout, true)
			return
		}
	}
}

// carryOn is carry for what is held already, and may go on now.
func (t *Team) carryOn(ctx context.Context) {
	if t.Env.Dial == nil {
		return
	}
	if rows, err := t.Ledger.Members(ctx, false); err == nil && slices.ContainsFunc(rows, carried) {
		_, _ = t.Env.Dial(ctx, t.Layout, true)
	}
}

// carried reports whether a member gets its mail from the supervisor.
func carried(m ledger.Member) bool {
	return m.Observed == team.Running && !team.KindOf(m.Spec.Agent).ReadsMailbox
}

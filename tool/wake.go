package tool

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// carry starts a killed supervisor again if posted mail is for agents that do not read their
// mailbox. It reports no failure, since the message is safe: the next command tries again.
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

// carryOn is carry for held mail that may be deliverable now.
func (t *Team) carryOn(ctx context.Context) {
	if t.Env.Dial == nil {
		return
	}
	if rows, err := t.Ledger.Members(ctx, false); err == nil && slices.ContainsFunc(rows, carried) {
		_, _ = t.Env.Dial(ctx, t.Layout, true)
	}
}

// carried reports whether the supervisor delivers a member's mail.
func carried(m ledger.Member) bool {
	return m.Observed == team.Running && !team.KindOf(m.Spec.Agent).ReadsMailbox
}

package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// notReading returns the recipients without any sign of reading mail: a command, or a program that
// has joined, that has neither read its mailbox nor used the team otherwise. The message stays in
// the mailbox until the program reads it. Recipients that cannot be checked are omitted.
func (t *Team) notReading(ctx context.Context, ds []ledger.Delivery) []string {
	var out []string
	for _, d := range ds {
		m, err := t.Ledger.MemberBySession(ctx, d.Session)
		if err != nil || m.Spec.Asks || !team.KindOf(m.Spec.Agent).MayIgnoreMail {
			continue
		}
		if does, err := t.mailer(Caller{}).TakesPart(ctx, m, m.JoinedAt); err == nil && !does {
			out = append(out, m.Name)
		}
	}
	return out
}

// SaysNotReading returns the warning to a sender about recipients that do not read mail; "" for
// none.
func SaysNotReading(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s has never read its mail: it sees the message if its program runs teamctl inbox", names[0])
	}
	return fmt.Sprintf("%s have never read their mail: they see the message if their programs run teamctl inbox", strings.Join(names, ", "))
}

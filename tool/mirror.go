package tool

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
)

// PostMirrored posts and mails a message from another program's mailbox exactly once, whichever
// process is killed; a message that was posted before is mailed if it is not yet. Its From is a
// member that mirrors the sender in that program, or the lead if a person has bridged the two
// teams.
func (t *Team) PostMirrored(ctx context.Context, m ledger.Mirrored, n ledger.NewMessage) error {
	msg, ds, err := t.as(Caller{Name: n.From}).MirrorMail(ctx, m, n)
	if err != nil || msg.ID == "" {
		return err
	}
	t.mailer(Caller{Name: n.From}).Deliver(ctx, ds)
	t.carry(ctx, ds)
	return nil
}

package mail

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-multierror"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/regular"
)

// AfterBoot marks the mailboxes as lacking whose members have mail waiting, once in
// every boot of the machine. A mailbox is not synced when a message is appended: what
// was promised is in the ledger. A machine that loses its power may come up with a
// mailbox that is sound and older than the ledger, which has the message as mailed;
// nothing else would show that it is missing. The marks are durable before the boot is
// recorded, so that whoever is killed in between leaves them to the next; Rebuild, and
// whoever mails, puts back what such a mailbox lacks.
func (m Mailer) AfterBoot(ctx context.Context, boot string) error {
	record := m.Layout.MailBoot()
	if was, err := regular.ReadFile(record); err == nil && string(was) == boot {
		return nil
	}
	members, err := m.Ledger.Members(ctx, false)
	if err != nil {
		return err
	}
	var all *multierror.Error
	for _, to := range members {
		if err := m.doubt(ctx, to.Name, to.SessionKey); err != nil {
			all = multierror.Append(all, fmt.Errorf("mark the mailbox of %s: %w", to.Name, err))
		}
	}
	if all.ErrorOrNil() != nil { // the next supervisor marks them again
		return all
	}
	return atomicfile.Write(record, []byte(boot), 0o600, true)
}

// doubt marks a mailbox as lacking unless its member has taken all of its mail.
func (m Mailer) doubt(ctx context.Context, name, session string) error {
	waiting, err := m.Ledger.Waiting(ctx, session)
	if err != nil || len(waiting) == 0 {
		return err
	}
	box, err := m.Box(name)
	if err != nil {
		return err
	}
	_, err = box.Lack(ctx)
	return err
}

package mail

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Fresh marks as read what is unread in the mailbox and not for the generation that
// starts: what an earlier member of the same name left, which the ledger has as
// dropped since that member left, and what was dropped when the generation began.
// What a damaged or deleted mailbox lacks of its own mail is put back. It may be
// called again, and while others mail.
func (m Mailer) Fresh(ctx context.Context, row ledger.Member) error {
	box, err := m.Box(row.Name)
	if err != nil || row.StartedAt == 0 && gone(box) {
		return err
	}
	if m.lacking(box) { // nobody may mail for long
		if _, err := m.restore(ctx, box, row.SessionKey); err != nil {
			return err
		}
	}
	for range 5 {
		// Damage is repaired by who meets it, and nobody else would learn of it: the
		// generation that starts reads a sound file.
		if err = m.fresh(ctx, box, row); !damaged(err) {
			break
		}
		if _, err := m.restore(ctx, box, row.SessionKey); err != nil {
			return err
		}
	}
	return err
}

// fresh is one pass of Fresh; it ends at damage.
func (m Mailer) fresh(ctx context.Context, box *inbox.Box, row ledger.Member) error {
	var failed error
	_, err := box.Consume(ctx, 0, func(e inbox.Entry) bool {
		old, err := m.ofAnother(ctx, e, row)
		if err != nil {
			failed = err
		}
		return old && err == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

// ofAnother reports that an entry is not for this generation: it was sent to another
// session, is dropped, or is of a foreign program and older than the member.
func (m Mailer) ofAnother(ctx context.Context, e inbox.Entry, row ledger.Member) (bool, error) {
	if e.ID != "" {
		d, err := m.Ledger.Delivery(ctx, e.ID, row.Name)
		if err == nil {
			return d.Session != row.SessionKey || d.State == team.Dropped, nil
		}
		if !team.IsCode(err, team.CodeNotFound) {
			return false, err
		}
	}
	at, err := time.Parse(time.RFC3339, e.Timestamp)
	return err == nil && at.UnixMilli() < row.JoinedAt, nil
}

// open says, under a mailbox's lock, whether a delivery may still go into it: its
// recipient may have left meanwhile, and its name be another's.
func (m Mailer) open(ctx context.Context, d ledger.Delivery) func() (bool, error) {
	return func() (bool, error) {
		now, err := m.Ledger.Delivery(ctx, d.MessageID, d.Recipient)
		if err != nil {
			return false, err
		}
		return now.Session == d.Session && !ledger.Reached(now.State, team.Injected) && now.State != team.Dropped, nil
	}
}

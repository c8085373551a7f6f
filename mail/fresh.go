package mail

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Fresh marks as read the unread mail in the mailbox that is not for the starting generation: mail
// of an earlier member of the same name, which the ledger has as dropped since that member left,
// and mail that was dropped when the generation began. Mail of its own that a damaged or deleted
// mailbox lost is restored. It may be called again, and while others mail.
func (m Mailer) Fresh(ctx context.Context, row ledger.Member) error {
	box, err := m.Box(row.Name)
	if err != nil || row.StartedAt == 0 && gone(box) {
		return err
	}
	if m.lacking(box) { // the lock must be held only briefly
		if _, err := m.restore(ctx, box, row.SessionKey); err != nil {
			return err
		}
	}
	for range 5 {
		// The reader that finds damage repairs it, and no other would learn of it: the starting
		// generation reads a sound file.
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

// ofAnother reports that an entry is not for this generation: it was sent to another session, is
// dropped, or is of a foreign program and older than the member.
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

// open reports, under a mailbox's lock, whether a delivery may still be appended: its recipient
// may have left meanwhile, and another may have its name.
func (m Mailer) open(ctx context.Context, d ledger.Delivery) func() (bool, error) {
	return func() (bool, error) {
		now, err := m.Ledger.Delivery(ctx, d.MessageID, d.Recipient)
		if err != nil {
			return false, err
		}
		return now.Session == d.Session && !ledger.Reached(now.State, team.Injected) && now.State != team.Dropped, nil
	}
}

package mail

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
)

// TakesPart reports whether a member has read its mailbox or used the team otherwise since
// a time in Unix milliseconds, by the ledger or by its mailbox file.
func (m Mailer) TakesPart(ctx context.Context, row ledger.Member, since int64) (bool, error) {
	does, err := m.Ledger.TakesPart(ctx, row, since)
	return does || m.readsFile(row, since), err
}

// readsFile reports whether a program reads its mailbox file by itself.
func (m Mailer) readsFile(row ledger.Member, since int64) bool {
	box, err := m.Box(row.Name)
	if err != nil {
		return false
	}
	if box.ReadAt().UnixMilli() >= since {
		return true
	}
	entries, err := box.Look()
	if err != nil {
		return false
	}
	from := inbox.Timestamp(time.UnixMilli(since))
	for _, e := range entries {
		if e.Read && e.Timestamp >= from {
			return true
		}
	}
	return false
}

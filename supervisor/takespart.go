package supervisor

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
)

// takesPartLimit bounds the look at what a program has done in the team.
const takesPartLimit = 2 * time.Second

// takesPart reports whether a program that is not known to answer shutdown requests takes
// part in the team since its start: it has read mail, sent some, or worked on tasks. Such a
// one is asked too; it is ended at the deadline if it does not answer.
func (s *Supervisor) takesPart(row ledger.Member) bool {
	ctx, cancel := context.WithTimeout(s.ctx, takesPartLimit)
	defer cancel()
	does, err := (Mailer{s.cfg.Layout, s.cfg.Ledger}).TakesPart(ctx, row, row.StartedAt)
	if err != nil {
		s.log.Warn("look whether a member reads its mail", "member", row.Name, "err", err)
	}
	return does
}

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

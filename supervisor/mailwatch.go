package supervisor

import (
	"context"
	"os"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/team"
)

// watchMail looks at mailboxes that other programs change: the lead's, in which they ask for
// things, and those that have become shorter or another file.
func (s *Supervisor) watchMail() {
	w, err := inbox.Watch(s.ctx, s.cfg.Layout.Inboxes())
	if err != nil {
		s.log.Warn("watch the mailboxes", "err", err)
		return
	}
	s.step(func(ctx context.Context) message {
		defer func() { _ = w.Close() }() // it was only read
		s.mendMail(ctx, w)
		return nil
	})
	s.watchLeadMail(w)
}

// mendMail reconciles each mailbox that has become shorter or another file, as soon as that
// is seen: whether another program had read what it took away is not to be seen for long.
func (s *Supervisor) mendMail(ctx context.Context, w *inbox.Watcher) {
	mail := Mailer{s.cfg.Layout, s.cfg.Ledger}
	seen := map[string]os.FileInfo{}
	for {
		var name string
		select {
		case name = <-w.Named():
		case <-w.Done():
			return
		case <-ctx.Done():
			return
		}
		box, err := mail.Box(name)
		if err != nil {
			continue // no member's
		}
		now, err := os.Lstat(box.Path())
		if err != nil {
			continue // it may be back already; else the next who writes makes it anew
		}
		before := seen[name]
		seen[name] = now
		if before != nil && os.SameFile(before, now) && now.Size() >= before.Size() {
			continue
		}
		to, err := mail.Ledger.Member(ctx, name)
		if err == nil {
			err = mail.Mend(ctx, to)
		}
		if err != nil && ctx.Err() == nil && !team.IsCode(err, team.CodeNotFound) {
			s.log.Warn("reconcile a mailbox", "agent", name, "err", err)
		}
	}
}

// watchLeadMail has somebody look at the lead's mailbox whenever it has changed:
// other programs ask the lead by writing there.
func (s *Supervisor) watchLeadMail(w *inbox.Watcher) {
	if s.cfg.LeadMail == nil {
		return
	}
	changes := w.Changes(team.LeadName)
	s.step(func(ctx context.Context) message {
		said := ""
		for {
			err := s.cfg.LeadMail(ctx)
			if ctx.Err() != nil {
				return nil
			}
			// What is refused stays in the mailbox and is refused again.
			if err != nil && err.Error() != said {
				s.log.Warn("take up what the lead was asked", "err", err)
			}
			said = ""
			if err != nil {
				said = err.Error()
			}
			select {
			case <-changes:
			case <-w.Done():
				return nil
			case <-ctx.Done():
				return nil
			}
		}
	})
}

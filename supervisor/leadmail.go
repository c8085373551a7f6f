package supervisor

import (
	"context"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/team"
)

// watchLeadMail has somebody look at the lead's mailbox whenever it has changed:
// other programs ask the lead by writing there.
func (s *Supervisor) watchLeadMail() {
	if s.cfg.LeadMail == nil {
		return
	}
	w, err := inbox.Watch(s.ctx, s.cfg.Layout.Inboxes())
	if err != nil {
		s.log.Warn("watch the lead's mailbox", "err", err)
		return
	}
	changes := w.Changes(team.LeadName)
	s.step(func(ctx context.Context) message {
		defer func() { _ = w.Close() }() // it was only read
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

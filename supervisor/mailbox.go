package supervisor

import "context"

// watchMail follows the mailboxes that other programs change.
func (s *Supervisor) watchMail() {
	wait, err := s.mailer().Watch(s.ctx, s.log, s.cfg.LeadMail)
	if err != nil {
		s.log.Warn("watch the mailboxes", "err", err)
		return
	}
	s.step(func(context.Context) message {
		wait()
		return nil
	})
}

// pruneMail prunes the mailboxes that have grown.
func (s *Supervisor) pruneMail() {
	if s.pruning {
		return
	}
	s.pruning = true
	sizes := s.boxSizes
	s.step(func(ctx context.Context) message {
		next, err := s.mailer().PruneGrown(ctx, sizes)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("prune mailboxes", "err", err)
		}
		return pruned(next)
	})
}

// pruned is the end of a prune with the sizes of the files, by name.
type pruned map[string]int64

func (p pruned) apply(s *Supervisor) { s.pruning, s.boxSizes = false, p }

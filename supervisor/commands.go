package supervisor

import (
	"context"

	"github.com/teamctl/teamctl/internal/run"
)

// commandsLeft ends what the set-up commands and hooks of an earlier supervisor, and the
// gates of a merge that was killed, have left running.
func (s *Supervisor) commandsLeft() {
	s.step(func(ctx context.Context) message {
		left, err := run.BookOf(s.cfg.Layout).Sweep(ctx)
		for _, l := range left {
			s.log.Info("ended a command that was cut short", "kind", l.Kind, "dir", l.Dir, "processes", l.Processes)
		}
		if err != nil {
			s.log.Warn("end commands that were cut short", "err", err)
		}
		return nil
	})
}

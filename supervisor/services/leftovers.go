package services

import (
	"context"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/supervisor/loop"
)

// Leftovers ends processes left by the set-up commands and hooks of an earlier supervisor, and by
// the gates of a merge that was killed.
type Leftovers struct {
	loop.Quiet
	team loop.Team
}

// NewLeftovers returns the service.
func NewLeftovers(t loop.Team) *Leftovers { return &Leftovers{team: t} }

// Start ends them beside the loop.
func (l *Leftovers) Start(_ context.Context, bus loop.Bus) error {
	bus.Go("end commands that were cut short", func(ctx context.Context) func() {
		left, err := run.BookOf(l.team.Layout).Sweep(ctx)
		for _, c := range left {
			l.team.Log.Info("ended a command that was cut short", "kind", c.Kind, "dir", c.Dir, "processes", c.Processes)
		}
		if err != nil {
			l.team.Log.Warn("end commands that were cut short", "err", err)
		}
		return nil
	})
	return nil
}

package services

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// litterAge is the age of a temporary file that no running writer uses.
const litterAge = time.Minute

// Litter removes the temporary files of killed writers at the start and, for files too recent
// then, once more later.
type Litter struct {
	loop.Quiet
	team loop.Team
}

// NewLitter returns the service.
func NewLitter(t loop.Team) *Litter { return &Litter{team: t} }

// Ready sweeps now, and once more after litterAge.
func (l *Litter) Ready() {
	l.sweep()
	l.Bus.After("litter", litterAge+time.Second, l.sweep)
}

func (l *Litter) sweep() {
	l.Bus.Go("remove what killed writers left", func(ctx context.Context) func() {
		n, err := inbox.Sweep(l.team.Layout.Inboxes(), l.team.Layout.Locks(), litterAge)
		c, cerr := publish.Sweep(ctx, l.team.Layout)
		b, berr := sweepBundles(l.team.Layout, litterAge)
		r, rerr := atomicfile.SweepTemp(l.team.Layout.Reviews(), litterAge)
		if err := errors.Join(err, cerr, berr, rerr); err != nil && ctx.Err() == nil {
			l.team.Log.Warn("remove what killed writers left", "err", err)
		}
		if n += c + b + r; n > 0 {
			l.team.Log.Info("removed what killed writers left", "files", n)
		}
		return nil
	})
}

// sweepBundles removes the leftovers of killed writers from the members' bundles. They may contain
// secrets, so this does not wait for the member's next start.
func sweepBundles(l team.Layout, age time.Duration) (n int, err error) {
	entries, err := os.ReadDir(l.Members())
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return 0, err
	}
	var errs []error
	for _, e := range entries {
		b := l.Bundle(e.Name())
		k, err := atomicfile.SweepTemp(string(b), age)
		o, oerr := atomicfile.SweepTemp(b.Outputs(), age)
		n, errs = n+k+o+bundle.SweepOlder(b, age), append(errs, err, oerr)
	}
	return n, errors.Join(errs...)
}

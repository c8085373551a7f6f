package look

import (
	"context"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// pause is the minimum time between two reads: a person reads no faster.
const pause = 200 * time.Millisecond

// Follow calls each with a Snapshot of the team now, and again whenever the team has changed, or
// its supervisor has ended, was replaced, or stops or continues to answer, until ctx ends, which
// is not an error. It calls interest before each snapshot.
func Follow(ctx context.Context, t *tool.Team, interest func() view.Interest, each func(view.Snapshot)) error {
	return watch(ctx, t, interest().Looks, func(silent time.Time) (due time.Duration, err error) {
		s, due, err := snapshot(ctx, t, interest().Tasks, silent)
		if err == nil {
			each(s)
		}
		return due, err
	})
}

// watch calls read at the times of Follow, with the time since which the supervisor has not
// answered, zero if it does. read returns when to read again even without a change, 0 for never.
func watch(ctx context.Context, t *tool.Team, looks <-chan bool, read func(silent time.Time) (due time.Duration, err error)) error {
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	hub := t.Env.Watch
	if hub == nil {
		hub = new(dirwatch.Hub)
	}
	comes := make(chan struct{}, 1)
	pidFile := t.Layout.SupervisorPID()
	forget, err := hub.Watch(filepath.Dir(pidFile), func(e team.FileEvent) {
		if !e.Lost && !e.Poll && filepath.Base(e.Name) != filepath.Base(pidFile) {
			return
		}
		select {
		case comes <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer forget()
	var p *pulse
	defer func() { p.end() }()
	for ctx.Err() == nil {
		p.check()
		sup, err := t.Standing() // before the read, which might see one that ends right after it
		if err != nil {
			return err
		}
		noted := t.Noting(sup)
		var due time.Duration
		next, err := p.follow(ctx, t, sup.PID, looks)
		if err == nil {
			p = next
			silent := p.silence()
			if !silent.IsZero() {
				silent, err = t.LastSign(ctx) // as every other command reports it
			}
			if err == nil {
				due, err = read(silent)
			}
		}
		if err != nil {
			noted()
			sup.Close()
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		p.read()
		wait(ctx, due, changes, comes, sup.Ended, p.turned)
		noted()
		sup.Close()
	}
	return nil
}

// wait returns when the next read is due, at least pause later.
func wait(ctx context.Context, due time.Duration, changes, comes, ended, turned <-chan struct{}) {
	rest := time.NewTimer(pause)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
		return
	}
	var again <-chan time.Time
	if due > 0 {
		timer := time.NewTimer(due)
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-changes:
	case <-comes:
	case <-ended:
	case <-turned:
	case <-again:
	case <-ctx.Done():
	}
}

package agent

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 15 * time.Second
	// writeLimit bounds a write that must not be cut short by the end of the
	// worker's context, and finishLimit one that is made after it: the supervisor
	// kills ten seconds after it asked.
	writeLimit  = 15 * time.Second
	finishLimit = 4 * time.Second
)

// transient reports an error that another try may not have: the ledger or its
// writer is busy or away.
func transient(err error) bool {
	switch team.CodeOf(err) {
	case team.CodeTimeout, team.CodeUnavailable, team.CodeInternal:
		return true
	default:
		return false
	}
}

// lost reports that a task is no longer ours: the fence of owner and attempt
// refused, or the task is gone.
func lost(err error) bool {
	return team.IsCode(err, team.CodeConflict) || team.IsCode(err, team.CodeNotFound)
}

// retry calls fn until its error is not transient, or ctx ends; then it returns
// ctx's error. The first failure is told, and that it is over. What fn writes to the
// ledger is applied once, however often it is tried.
func (w *worker) retry(ctx context.Context, doing string, fn func(context.Context) error) error {
	ctx = ledger.Repeated(ctx)
	told := false
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		err := fn(ctx)
		if err == nil || !transient(err) {
			if told && err == nil {
				w.out.line("%s: done after all", doing)
			}
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !told {
			w.out.line("%s: %v; trying again", doing, err)
			told = true
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// write is retry for a write that, once begun, is not cut short by the end of
// ctx, and that is made once more when ctx has ended before it was through.
func (w *worker) write(ctx context.Context, doing string, fn func(context.Context) error) error {
	step(ctx, doing)
	defer step(ctx, doing+", done")
	ctx = ledger.Repeated(ctx) // the last attempt, below, too
	whole := func(ctx context.Context) error {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
		defer cancel()
		return fn(c)
	}
	if ctx.Err() == nil {
		// An ended context counts as transient.
		if err := w.retry(ctx, doing, whole); err == nil || !transient(err) {
			return err
		}
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	return fn(c)
}

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
	// writeLimit bounds a write that must not be interrupted by the end of the worker's context,
	// finishLimit one that follows that end: the supervisor kills ten seconds after its request.
	writeLimit  = 15 * time.Second
	finishLimit = 4 * time.Second
)

// transient reports whether another attempt may succeed: the ledger or its writer is busy or
// unavailable.
func transient(err error) bool {
	switch team.CodeOf(err) {
	case team.CodeTimeout, team.CodeUnavailable, team.CodeInternal:
		return true
	default:
		return false
	}
}

// lost reports whether a task is no longer ours: the fence of owner and attempt refused the write,
// or the task is deleted.
func lost(err error) bool {
	return team.IsCode(err, team.CodeConflict) || team.IsCode(err, team.CodeNotFound)
}

// retry calls fn until its error is not transient, or ctx ends; then it returns ctx's error. It
// reports the first failure, and the recovery. Writes of fn to the ledger are applied once,
// however often it is called.
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

// write is retry for a write that, once begun, is not interrupted by the end of ctx, and that is
// attempted once more if ctx has ended before it succeeded.
func (w *worker) write(ctx context.Context, doing string, fn func(context.Context) error) error {
	step(ctx, w.id.Name, doing)
	defer step(ctx, w.id.Name, doing+", done")
	ctx = ledger.Repeated(ctx) // also for the last attempt below
	whole := func(ctx context.Context) error {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
		defer cancel()
		return fn(c)
	}
	if ctx.Err() == nil {
		// The end of the context counts as transient.
		if err := w.retry(ctx, doing, whole); err == nil || !transient(err) {
			return err
		}
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	return fn(c)
}

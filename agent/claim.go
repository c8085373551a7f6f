package agent

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// nextTask claims the next task; nil if none is ready.
func (w *worker) nextTask(ctx context.Context) (*ledger.Task, error) {
	if t := w.next; t != nil {
		w.next = nil
		return t, nil
	}
	if w.notified {
		// A claim takes the writers' lock, reading does not.
		some := false
		err := w.retry(ctx, "look for work", func(ctx context.Context) (err error) {
			some, err = w.env.Ledger.Runnable(ctx, w.id.Session)
			return err
		})
		if err != nil || !some {
			return nil, err
		}
	}
	t, err := w.claim(ctx, "")
	if takesNone(err) {
		return nil, nil
	}
	return t, err
}

// takesNone reports that a claim was refused because of the worker's role or mode. Any other denial,
// such as that of a removed member, ends the worker.
func takesNone(err error) bool {
	r := team.ReasonOf(err)
	return team.IsCode(err, team.CodeDenied) && (r == team.ReasonRole || r == team.ReasonMode)
}

// claim claims the task with the id, or with an empty id the next ready task with a command: a
// task without one is for other members, and would fail here.
func (w *worker) claim(ctx context.Context, id string) (*ledger.Task, error) {
	var t *ledger.Task
	err := w.retry(ctx, "claim a task", func(ctx context.Context) error {
		// Not interrupted by the end of ctx: the result of a claim must be known.
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
		defer cancel()
		var err error
		t, err = w.env.Tasks.Claim(c, id)
		return err
	})
	return t, err
}

// releaseAll releases everything that the ledger lists as ours: claims of an earlier life.
func (w *worker) releaseAll(ctx context.Context) error {
	ts, err := w.env.Ledger.Tasks(ctx, ledger.TaskFilter{Owner: w.id.Session, OpenOnly: true})
	if err != nil {
		return err
	}
	for _, t := range ts {
		if t.Status != team.TaskClaimed && t.Status != team.TaskInProgress {
			continue // assigned to us, not claimed
		}
		if t.Review != 0 || t.Verification != 0 {
			continue // done: with the reviewer or the supervisor
		}
		if err := w.env.Tasks.Release(ctx, w.ref(t)); err != nil && !lost(err) {
			return err
		}
		w.out.line("task %s of an earlier attempt given back", t.ID)
	}
	return nil
}

// reannounce is the maximum age of a finished task whose notice is repeated.
const reannounce = 10 * time.Minute

// recover cleans up after an earlier life of this session: it ends the command that was running,
// releases its tasks, and repeats the notice of its newest task, which may not have been sent.
func (w *worker) recover(ctx context.Context) error {
	if _, err := w.env.Commands.Sweep(ctx); err != nil {
		w.out.line("end what an earlier life was running: %v", err)
	}
	err := w.retry(ctx, "look for tasks of an earlier life", w.releaseAll)
	if err != nil {
		return err
	}
	var ts []ledger.Task
	err = w.retry(ctx, "look for finished tasks", func(ctx context.Context) (err error) {
		ts, err = w.env.Ledger.Tasks(ctx, ledger.TaskFilter{Owner: w.id.Session})
		return err
	})
	if err != nil {
		return err
	}
	var newest *ledger.Task
	for i, t := range ts {
		done := t.Status == team.TaskCompleted || t.Status == team.TaskFailed
		if done && (newest == nil || t.CompletedAt > newest.CompletedAt) {
			newest = &ts[i]
		}
	}
	if newest == nil || w.env.Now().Sub(time.UnixMilli(newest.CompletedAt)) > reannounce {
		return nil
	}
	o := outcome{task: *newest, status: newest.Status}
	if newest.Result != nil {
		o.res = *newest.Result
		o.why = firstLine(newest.Result.Error)
	}
	w.last = &o
	w.announce(ctx, o)
	return nil
}

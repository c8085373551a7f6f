package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const (
	maxSummary = 200  // characters
	maxFiles   = 1000 // names kept in a result; the commit has all
)

// outcome is the result of a task.
type outcome struct {
	task   ledger.Task
	status team.TaskStatus // completed, failed, or pending: released
	res    ledger.Result
	why    string // of a failure, one line
	lost   bool   // taken away: nothing may be written any more
	ended  bool   // lost because the task was ended
	waits  string // what a finished task waits for before it is completed
	passed string // command by which it was verified
}

func failed(t ledger.Task, res ledger.Result, why string) outcome {
	if res.Error == "" {
		res.Error = why
	} else {
		res.Error = why + "\n" + res.Error
	}
	return outcome{task: t, status: team.TaskFailed, res: res, why: why}
}

func givenBack(t ledger.Task, why string) outcome {
	return outcome{task: t, status: team.TaskPending, why: why}
}

// orders is what a worker reads from a task's metadata; other keys belong to others.
type orders struct {
	Run     string        // bash
	Limit   time.Duration // of run and of verify, each; 0 for none
	Summary string
}

// errNoRun means that a task has no command: it is neither a worker's fault nor a worker's task.
var errNoRun = errors.New("task has no metadata.run")

func readOrders(t ledger.Task) (orders, error) {
	var raw struct {
		Run     *string `json:"run"`
		Timeout *string `json:"timeout"`
		Summary *string `json:"summary"`
	}
	if len(t.Metadata) > 0 {
		if err := json.Unmarshal(t.Metadata, &raw); err != nil {
			var te *json.UnmarshalTypeError
			if errors.As(err, &te) {
				return orders{}, fmt.Errorf("metadata.%s is a JSON %s, not a string", te.Field, te.Value)
			}
			return orders{}, fmt.Errorf("metadata: %w", err)
		}
	}
	var o orders
	if raw.Run != nil {
		o.Run = *raw.Run
	}
	if strings.TrimSpace(o.Run) == "" {
		return orders{}, errNoRun
	}
	if raw.Summary != nil {
		o.Summary = *raw.Summary
	}
	if raw.Timeout != nil && *raw.Timeout != "" {
		d, err := time.ParseDuration(*raw.Timeout)
		if err != nil || d <= 0 {
			return orders{}, fmt.Errorf("metadata.timeout %q is not a duration such as 90s or 10m", *raw.Timeout)
		}
		o.Limit = d
	}
	return o, nil
}

func (w *worker) ref(t ledger.Task) ledger.TaskRef {
	return ledger.TaskRef{ID: t.ID, Owner: w.id.Session, Attempt: t.Attempt}
}

// work carries out one claimed task. An error means that the worker cannot continue; the task has
// been released then.
func (w *worker) work(ctx context.Context, t ledger.Task) error {
	w.notified, w.broken = false, false
	w.setActivity(ctx, team.Working)
	began := time.Now()
	w.out.line("")
	w.out.line("── task %s: %s%s", t.ID, oneLine(t.Subject), attemptNote(t))

	err := w.write(ctx, "start task "+t.ID, func(c context.Context) error { return w.env.Tasks.Start(c, w.ref(t)) })
	if err != nil {
		if lost(err) {
			w.out.line("── task %s was taken away before it began: %v", t.ID, err)
			return nil
		}
		w.release(ctx, t, err.Error())
		return fmt.Errorf("start task %s: %w", t.ID, err)
	}
	o, broken := w.perform(ctx, t)
	if err := w.finish(ctx, o, time.Since(began)); err != nil {
		return err
	}
	return broken
}

func attemptNote(t ledger.Task) string {
	if t.Attempt > 1 {
		return fmt.Sprintf(" (attempt %d)", t.Attempt)
	}
	return ""
}

// perform carries out the task's orders. An error means a broken worktree.
func (w *worker) perform(ctx context.Context, t ledger.Task) (outcome, error) {
	o, err := readOrders(t)
	if err != nil {
		return failed(t, ledger.Result{}, err.Error()), nil
	}
	before, early, err := w.prepare(ctx, t)
	if err != nil || early != nil {
		if early == nil {
			e := givenBack(t, err.Error())
			early = &e
		}
		return *early, err
	}

	w.out.line("$ %s", o.Run)
	r := w.command(ctx, t, ofTask, o.Run, o.Limit)
	if gone := w.interrupted(t, r); gone != nil {
		return *gone, nil
	}
	res := ledger.Result{ExitCode: r.code, Error: r.tail}
	if err := w.commit(ctx, t, r.ok(), before, &res); err != nil {
		if ctx.Err() != nil {
			return givenBack(t, "the worker was stopped"), nil
		}
		if r.ok() {
			return failed(t, res, "commit the changes: "+err.Error()), nil
		}
		w.out.line("commit the changes: %v", err)
	}
	if !r.ok() {
		return failed(t, res, r.why(o.Limit)), nil
	}
	res.Summary = summary(o, r.tail)

	if t.Verify != "" {
		w.out.line("verify $ %s", t.Verify)
		v := w.command(ctx, t, ofVerify, t.Verify, o.Limit)
		if gone := w.interrupted(t, v); gone != nil {
			return *gone, nil
		}
		if !v.ok() {
			res.ExitCode, res.Error = v.code, v.tail
			return failed(t, res, "verify failed: "+v.why(o.Limit)), nil
		}
	}
	res.Error = ""
	return outcome{task: t, status: team.TaskCompleted, res: res, passed: t.Verify}, nil
}

// interrupted returns the outcome of a command that ended neither by itself nor by its timeout.
func (w *worker) interrupted(t ledger.Task, r ran) *outcome {
	var o outcome
	switch r.how {
	case byContext:
		o = givenBack(t, "the worker was stopped")
	case byLoss:
		o = outcome{task: t, lost: true, ended: errors.Is(r.err, errEnded), why: r.err.Error()}
	case byItself, byTimeout, byError:
		return nil
	}
	return &o
}

func summary(o orders, output string) string {
	s := o.Summary
	if s == "" {
		s = lastLine(output)
	}
	if s == "" {
		s = "done, no output"
	}
	return cut(oneLine(plain.Text(s)), maxSummary)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// finish writes the outcome to the ledger, notifies the lead, and closes the task on the screen.
func (w *worker) finish(ctx context.Context, o outcome, took time.Duration) error {
	t := o.task
	spent := took.Round(time.Millisecond)
	if took >= 10*time.Second {
		spent = took.Round(time.Second / 10)
	}
	if o.lost {
		w.broken = o.ended
		w.out.line("── task %s was taken away after %s: %s", t.ID, spent, o.why)
		return nil
	}
	if o.status == team.TaskPending {
		w.release(ctx, t, o.why)
		return nil
	}
	err := w.resolve(ctx, &o)
	switch {
	case err == nil:
	case lost(err):
		w.out.line("── task %s was taken away, its result is not recorded: %v", t.ID, err)
		return nil
	default:
		w.release(ctx, t, "its result could not be recorded")
		return fmt.Errorf("record the result of task %s: %w", t.ID, err)
	}
	w.unsaved = "after task " + t.ID
	if o.waits != "" {
		w.out.line("── task %s is done in %s and waits for %s: %s", t.ID, spent, o.waits, o.res.Summary)
		return nil
	}
	w.last = &o
	if o.status == team.TaskCompleted {
		note := ""
		if o.res.Commit != "" {
			note = ", commit " + short(o.res.Commit)
		}
		w.out.line("── task %s completed in %s%s: %s", t.ID, spent, note, o.res.Summary)
	} else {
		w.out.line("── task %s failed after %s: %s", t.ID, spent, o.why)
	}
	w.announce(ctx, o)
	return nil
}

// resolve completes or fails a task. A result that the ledger refuses is replaced by a short one
// that says so: otherwise the task would be repeated for ever.
func (w *worker) resolve(ctx context.Context, o *outcome) error {
	ref := w.ref(o.task)
	if o.status == team.TaskCompleted {
		err := w.write(ctx, "complete task "+o.task.ID, func(c context.Context) error {
			return w.env.Tasks.Complete(c, ref, o.res, o.passed)
		})
		if err == nil {
			o.waits = w.waitsFor(ctx, ref)
		}
		if !team.IsCode(err, team.CodeInvalid) && !team.IsCode(err, team.CodeLimit) && team.ReasonOf(err) != team.ReasonHookBlocked {
			return err
		}
		*o = failed(o.task, ledger.Result{Commit: o.res.Commit}, "the result was refused: "+err.Error())
	}
	return w.write(ctx, "fail task "+o.task.ID, func(c context.Context) error {
		return w.env.Tasks.Fail(c, ref, o.res)
	})
}

// waitsFor returns what a finished task waits for, or "". If the ledger cannot be read, the task
// is not announced as completed: a reviewer may have to decide that. A task whose command was
// changed meanwhile is verified by the supervisor.
func (w *worker) waitsFor(ctx context.Context, ref ledger.TaskRef) string {
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	t, err := w.env.Ledger.Task(c, ref.ID)
	switch {
	case err != nil:
		w.out.line("look at task %s: %v", ref.ID, err)
		return "what the ledger will say"
	case t.Attempt != ref.Attempt:
	case t.Verification != 0:
		return "its verification"
	case t.Review != 0:
		return "a review"
	}
	return ""
}

// release releases a task.
func (w *worker) release(ctx context.Context, t ledger.Task, why string) {
	err := w.write(ctx, "release task "+t.ID, func(c context.Context) error {
		return w.env.Tasks.Release(c, w.ref(t))
	})
	switch {
	case err == nil:
		w.out.line("── task %s given back: %s", t.ID, why)
	case lost(err):
		w.out.line("── task %s is no longer ours: %v", t.ID, err)
	default:
		// The supervisor releases the tasks of a dead owner.
		w.out.line("── task %s could not be given back: %v", t.ID, err)
	}
}

func short(sha string) string { return sha[:min(len(sha), 10)] }

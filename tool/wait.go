package tool

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/hands"
	"github.com/teamctl/teamctl/team"
)

// Wait returns when all tasks (or all named ones) have ended: completed, failed, or pending behind
// a failed one. The error names those that did not complete. If no member can take pending tasks,
// it fails with the reason.
func (t *Team) Wait(ctx context.Context, in WaitIn) (_ Progress, err error) {
	ctx, leave := t.Attended(ctx)
	defer leave(&err)
	limit, cancel := bounded(ctx, in.Timeout)
	defer cancel()
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return Progress{}, err
	}
	defer stop()
	look := waiting{Team: t, in: in}
	last := false
	if err := t.verifyOn(ctx); err != nil {
		return Progress{}, err
	}
	for {
		var p Progress
		if open, err := look.again(ctx); err != nil {
			return p, err
		} else if !open || last {
			if p, err = t.Progress(ctx); err != nil {
				return p, err
			}
			if in.Each != nil {
				in.Each(p)
			}
			by, err := hands.Of(ctx, t.Ledger, p.Members)
			if err != nil {
				return p, err
			}
			if done, err := ended(p, in.Tasks, by); done || err != nil {
				return p, err
			}
			if last {
				return p, late(p, in.Timeout)
			}
		}
		select {
		case <-changes:
		case <-limit.Done():
			if last = over(ctx, limit, in.Timeout); !last {
				return p, context.Cause(ctx)
			}
		}
	}
}

// late is the error of a wait that has reached its limit.
func late(p Progress, limit time.Duration) error {
	hint := "teamctl task ls --open"
	if slices.ContainsFunc(p.Tasks, func(t ledger.Task) bool { return t.Verification != 0 }) {
		hint = "teamctl task ls --open shows what is being verified"
	}
	if slices.ContainsFunc(p.Tasks, func(t ledger.Task) bool { return t.Review != 0 }) {
		hint = "teamctl approvals shows what waits for a review"
	}
	return team.Errorf(team.CodeTimeout, "%d of %d tasks are not done after %s", p.Counts.Total()-p.Counts.Completed, p.Counts.Total(), limit).
		WithHint(hint)
}

// waiting checks awaited tasks without reading a long board at every change.
type waiting struct {
	*Team
	in    WaitIn
	begun bool  // the whole board was reported
	after int64 // the last processed event
	part  Progress
}

// manyChanged is the number of changed tasks above which the whole board is read.
const manyChanged = 1000

// again reports whether the awaited tasks have not ended. False only means that the whole board
// must be read: for the first report, or because they may have ended.
func (w *waiting) again(ctx context.Context) (open bool, err error) {
	if w.in.Each == nil && len(w.in.Tasks) == 0 {
		p := Progress{}
		if p.Counts, err = w.Ledger.Counts(ctx); err != nil {
			return false, err
		}
		return w.byNumbers(ctx, p)
	}
	ids := w.in.Tasks
	if w.in.Each != nil {
		changed, err := w.changed(ctx)
		if err != nil || !w.begun || len(changed) > manyChanged {
			w.begun = err == nil
			return false, err
		}
		ids = append(changed, ids...)
	}
	b, err := w.Ledger.BoardOf(ctx, ids)
	if err != nil {
		return false, err
	}
	w.part = Progress{At: nowMS(), Tasks: b.Tasks, Counts: b.Counts, Part: &b}
	if w.in.Each != nil {
		if w.part.Members, err = w.Ledger.Members(ctx, false); err != nil {
			return false, err
		}
		w.in.Each(w.part)
	}
	if len(w.in.Tasks) == 0 {
		return w.byNumbers(ctx, w.part)
	}
	return w.byTasks(ctx, w.part)
}

// changed returns the tasks with events since the last check.
func (w *waiting) changed(ctx context.Context) (ids []string, err error) {
	last, err := w.Ledger.LastEvent(ctx)
	if err != nil || !w.begun {
		w.after = last
		return nil, err
	}
	events, err := w.Ledger.Events(ctx, w.after, 0, ledger.EventFilter{What: team.TaskEvents})
	if err != nil {
		return nil, err
	}
	w.after = last
	for _, e := range events {
		w.after = max(w.after, e.Seq)
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// byNumbers reports whether the counts alone show that not all tasks have ended.
func (w *waiting) byNumbers(ctx context.Context, p Progress) (open bool, err error) {
	if p.Counts.Claimed+p.Counts.InProgress > 0 {
		return true, nil
	}
	if p.Counts.Pending == p.Counts.Stuck {
		return false, nil
	}
	return w.takeable(ctx, p)
}

// byTasks reports whether one of the named tasks has not ended.
func (w *waiting) byTasks(ctx context.Context, p Progress) (open bool, err error) {
	there := make(map[string]ledger.Task, len(p.Tasks))
	for _, task := range p.Tasks {
		there[task.ID] = task
	}
	var ready []string
	blocked := false
	for _, id := range w.in.Tasks {
		switch task, ok := there[id]; {
		case !ok:
			return false, nil
		case task.Status == team.TaskPending && p.Part.Stuck[id]:
		case task.Status == team.TaskPending && len(task.BlockedBy) > 0:
			blocked = true
		case task.Status == team.TaskPending:
			ready = append(ready, id)
		case task.Status != team.TaskCompleted && task.Status != team.TaskFailed:
			open = true
		}
	}
	if open || blocked && p.Counts.Claimed+p.Counts.InProgress > 0 {
		return true, nil
	}
	if blocked { // the remaining ones may depend on any running task
		return w.takeable(ctx, p)
	}
	if len(ready) > 0 {
		return w.takeable(ctx, p, ready...)
	}
	return false, nil
}

// takeable reports whether a member can take a pending task, of the given ids if any.
func (w *waiting) takeable(ctx context.Context, p Progress, ids ...string) (bool, error) {
	if p.Members == nil {
		var err error
		if p.Members, err = w.Ledger.Members(ctx, false); err != nil {
			return false, err
		}
	}
	h, err := hands.Of(ctx, w.Ledger, p.Members)
	if err != nil || len(h.Any)+len(h.Run) == 0 {
		return false, err
	}
	return w.Ledger.Takeable(ctx, h.Takers, ids...)
}

// Progress returns the current board.
func (t *Team) Progress(ctx context.Context) (Progress, error) {
	p := Progress{At: nowMS()}
	var err error
	if p.Tasks, err = t.Ledger.Tasks(ctx, ledger.TaskFilter{}); err != nil {
		return p, err
	}
	if p.Members, err = t.Ledger.Members(ctx, false); err != nil {
		return p, err
	}
	p.Counts, err = t.Ledger.Counts(ctx)
	return p, err
}

// ended reports whether the awaited tasks have ended, and the failures.
func ended(p Progress, ids []string, by hands.Hands) (bool, error) {
	byID := make(map[string]ledger.Task, len(p.Tasks))
	for _, task := range p.Tasks {
		byID[task.ID] = task
	}
	if len(ids) == 0 {
		for _, task := range p.Tasks {
			ids = append(ids, task.ID)
		}
	}
	dead := map[string]bool{}
	var failed, stuck []string
	var left []ledger.Task // pending, without a member that can take them
	open, blocked := false, false
	goesOn := p.Counts.Claimed+p.Counts.InProgress > 0 || slices.ContainsFunc(p.Tasks, func(t ledger.Task) bool {
		return t.Status == team.TaskPending && len(t.BlockedBy) == 0 && t.TakenBy(by.Takers)
	})
	for _, id := range ids {
		task, ok := byID[id]
		switch {
		case !ok:
			return true, team.Errorf(team.CodeNotFound, "no task %q", id).WithReason(team.ReasonTaskNotFound).WithHint("teamctl task ls")
		case task.Status == team.TaskCompleted:
		case task.Status == team.TaskFailed:
			failed = append(failed, id)
		case task.Status == team.TaskPending && deadEnd(byID, task, dead):
			stuck = append(stuck, id)
		case task.Status == team.TaskPending && len(task.BlockedBy) > 0:
			open, blocked = open || goesOn, true
		case task.Status == team.TaskPending && !task.TakenBy(by.Takers):
			left = append(left, task)
		default:
			open = true
		}
	}
	switch {
	case open:
		return false, nil
	case len(left) == 0 && blocked: // they depend on tasks that no member takes
		for _, task := range p.Tasks {
			if task.Status == team.TaskPending && len(task.BlockedBy) == 0 {
				left = append(left, task)
			}
		}
		return true, by.Short(left).Err()
	case len(left) > 0:
		return true, by.Short(left).Err()
	case len(failed)+len(stuck) == 0:
		return true, nil
	}
	tasks := "tasks"
	if len(failed) == 1 {
		tasks = "task"
	}
	err := team.Errorf(team.CodeInternal, "%d %s failed (%s)", len(failed), tasks, strings.Join(failed, ", "))
	if len(stuck) > 0 {
		err = team.Errorf(team.CodeInternal, "%s and %d are stuck behind them (%s)", err.Msg, len(stuck), strings.Join(stuck, ", "))
	}
	hint := "teamctl task ls"
	if len(failed) > 0 {
		hint = "teamctl task show " + failed[0]
	}
	return true, err.WithReason(team.ReasonTasksFailed).WithHint(hint)
}

// deadEnd reports whether a pending task depends, directly or not, on a failed one.
func deadEnd(byID map[string]ledger.Task, task ledger.Task, memo map[string]bool) bool {
	if known, ok := memo[task.ID]; ok {
		return known
	}
	memo[task.ID] = false
	for _, id := range task.BlockedBy {
		dep := byID[id]
		if dep.Status == team.TaskFailed || dep.Status == team.TaskPending && deadEnd(byID, dep, memo) {
			memo[task.ID] = true
			break
		}
	}
	return memo[task.ID]
}

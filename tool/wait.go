package tool

import (
	"context"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Wait returns when every task (or every one named) has ended: completed, failed,
// or pending behind a failed one. The error says which did not complete. It wakes
// by event. Where nobody is left who could take what is pending, it says so
// instead of waiting for ever.
func (t *Team) Wait(ctx context.Context, in WaitIn) (Progress, error) {
	limit, cancel := bounded(ctx, in.Timeout)
	defer cancel()
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return Progress{}, err
	}
	defer stop()
	for {
		var p Progress
		if open, err := t.open(ctx, in); err != nil {
			return p, err
		} else if !open {
			if p, err = t.Progress(ctx); err != nil {
				return p, err
			}
			if in.Each != nil {
				in.Each(p)
			}
			if done, err := ended(p, in.Tasks); done || err != nil {
				return p, err
			}
		}
		select {
		case <-changes:
		case <-limit.Done():
			if over(limit, in.Timeout) && ctx.Err() == nil {
				if p, err = t.Progress(ctx); err != nil {
					return p, err
				}
				hint := "teamctl task ls --open"
				if slices.ContainsFunc(p.Tasks, func(t ledger.Task) bool { return t.Review != 0 }) {
					hint = "teamctl approvals shows what waits for a review"
				}
				return p, team.Errorf(team.CodeTimeout, "%d of %d tasks are not done after %s",
					p.Counts.Total()-p.Counts.Completed, p.Counts.Total(), in.Timeout).WithHint(hint)
			}
			return p, context.Cause(ctx)
		}
	}
}

// open reports that all tasks are waited for, and the numbers alone say that they have
// not ended: a long board is not read at every change.
func (t *Team) open(ctx context.Context, in WaitIn) (bool, error) {
	if in.Each != nil || len(in.Tasks) > 0 {
		return false, nil
	}
	p := Progress{}
	var err error
	if p.Counts, err = t.Ledger.Counts(ctx); err != nil {
		return false, err
	}
	if p.Counts.Claimed+p.Counts.InProgress > 0 {
		return true, nil
	}
	if p.Counts.Pending == p.Counts.Stuck {
		return false, nil
	}
	p.Members, err = t.Ledger.Members(ctx, false)
	return anyWorking(p), err
}

// Progress is the board as it stands.
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

// ended reports whether the tasks waited for have ended, and what went wrong.
func ended(p Progress, ids []string) (bool, error) {
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
	open, ready := false, false
	for _, id := range ids {
		task, ok := byID[id]
		switch {
		case !ok:
			return true, team.Errorf(team.CodeNotFound, "there is no task %s", id).WithReason("task_not_found")
		case task.Status == team.TaskCompleted:
		case task.Status == team.TaskFailed:
			failed = append(failed, id)
		case task.Status == team.TaskPending && deadEnd(byID, task, dead):
			stuck = append(stuck, id)
		case task.Status == team.TaskPending:
			open, ready = true, true
		default:
			open = true
		}
	}
	switch {
	case open && ready && !anyWorking(p):
		return true, team.Errorf(team.CodeUnavailable, "tasks are pending and no member is running that could take them").
			WithReason("no_member_running").WithHint("teamctl spawn NAME, or teamctl start NAME")
	case open:
		return false, nil
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
	return true, err.WithReason("tasks_failed").WithHint(hint)
}

// deadEnd reports whether a pending task waits, directly or not, for a failed one.
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

// anyWorking reports whether somebody is there who could take a task. A team
// without any member is taken to be driven by hand.
func anyWorking(p Progress) bool {
	if len(p.Members) <= 1 || p.Counts.Claimed+p.Counts.InProgress > 0 {
		return true
	}
	return slices.ContainsFunc(p.Members, func(m ledger.Member) bool {
		external := m.Spec.Agent == ledger.AgentExternal // nobody starts or sees it: it comes when it comes
		return m.Name != team.LeadName && (external || m.Desired == team.WantRunning && !m.Observed.Terminal())
	})
}

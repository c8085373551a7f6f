package agent

import (
	"context"
	"fmt"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Work prepares and commits the worktree of an agent that claims and completes tasks by tools. It
// is safe for concurrent use.
type Work struct{ w *worker }

// NewWork returns the Work of an agent.
func NewWork(id Identity, env Env) *Work { return &Work{newWorker(id, env)} }

// Claimed prepares the worktree for a task that was just claimed: it commits left-over work and
// merges the commits of the task's dependencies. note says what was done. A task that cannot start
// here is released, or failed if no other worktree could do better; the error has the reason.
func (k *Work) Claimed(ctx context.Context, id string) (note string, err error) {
	w := k.w
	t, err := w.env.Ledger.Task(ctx, id)
	if err != nil {
		return "", err
	}
	before := ""
	if ws := w.env.Workspace; ws != nil {
		if before, err = ws.Head(ctx); err != nil {
			return "", err
		}
	}
	head, early, err := w.prepare(ctx, t)
	switch {
	case err != nil:
		w.release(ctx, t, err.Error())
		return "", err
	case early != nil && early.status == team.TaskFailed:
		if err := w.finish(ctx, *early, 0); err != nil {
			return "", err
		}
		w.save(ctx)
		return "", team.Errorf(team.CodeConflict, "task %s has failed: %s", id, early.why).WithReason(reasonMergeConflict)
	case early != nil:
		w.release(ctx, t, early.why)
		return "", ctx.Err()
	}
	if head != before {
		return fmt.Sprintf("Your worktree has the work of what it depends on: it is at commit %s now.", short(head)), nil
	}
	return "", nil
}

// Completing commits the changes of the task, and returns the commit with its work and the changed
// files.
func (k *Work) Completing(ctx context.Context, id string) (sha string, files []string, err error) {
	w := k.w
	t, err := w.env.Ledger.Task(ctx, id)
	if err != nil || t.Owner != w.id.Session {
		return "", nil, err // the ledger reports the error
	}
	var res ledger.Result
	if err := w.commit(ctx, t, true, "", &res); err != nil {
		return "", nil, fmt.Errorf("commit the changes of task %s: %w", id, err)
	}
	return res.Commit, res.Files, nil
}

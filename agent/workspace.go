package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// checkpointLimit bounds a checkpoint.
const checkpointLimit = time.Minute

// reasonMergeConflict is the reason of a Merge that needs a person.
const reasonMergeConflict = "merge_conflict"

// prepare prepares the worktree for a task and returns its starting commit. A task that cannot
// start has an outcome; an error means that the worktree is unusable for any task.
func (w *worker) prepare(ctx context.Context, t ledger.Task) (head string, early *outcome, err error) {
	stopped := func() (string, *outcome, error) {
		o := givenBack(t, "the worker was stopped")
		return "", &o, nil
	}
	ws := w.env.Workspace
	if ws == nil {
		return "", nil, nil
	}
	// Work left by an earlier task or life: in a commit of its own it is neither lost nor
	// attributed to this task, and cannot block the merge.
	sha, _, changed, err := ws.Commit(ctx, "work left over before task "+t.ID+"\n\n"+w.trailers(t))
	if err != nil {
		if ctx.Err() != nil {
			return stopped()
		}
		return "", nil, fmt.Errorf("commit left-over work: %w", err)
	}
	if changed {
		w.out.line("committed work left over from before as %s", short(sha))
	}

	commits, err := w.dependencies(ctx, t)
	if err != nil {
		if ctx.Err() != nil {
			return stopped()
		}
		o := failed(t, ledger.Result{ExitCode: 1}, "find the work it depends on: "+err.Error())
		return "", &o, nil
	}
	if len(commits) > 0 {
		err = ws.Merge(ctx, commits, fmt.Sprintf("merge what task %s depends on\n\n%s", t.ID, w.trailers(t)))
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return stopped()
		case team.ReasonOf(err) == reasonMergeConflict:
			o := failed(t, ledger.Result{ExitCode: 1}, "merge conflict: "+err.Error())
			return "", &o, nil
		case team.IsCode(err, team.CodeUnavailable), team.IsCode(err, team.CodeTimeout):
			return "", nil, fmt.Errorf("merge dependencies: %w", err)
		default: // for example a missing commit: no worker could do better
			o := failed(t, ledger.Result{ExitCode: 1}, "merge dependencies: "+err.Error())
			return "", &o, nil
		}
	}
	head, err = ws.Head(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return stopped()
		}
		return "", nil, fmt.Errorf("read the head: %w", err)
	}
	return head, nil, nil
}

// dependencies returns the commits with the work of t's dependencies, oldest task first. A
// dependency without a commit of its own is replaced by its own dependencies.
func (w *worker) dependencies(ctx context.Context, t ledger.Task) ([]string, error) {
	seen := map[string]bool{}
	found := map[string]string{} // task id -> commit
	level := t.DependsOn
	for len(level) > 0 {
		var ask []string
		for _, id := range level {
			if !seen[id] {
				seen[id] = true
				ask = append(ask, id)
			}
		}
		if len(ask) == 0 {
			break
		}
		var tasks []ledger.Task
		err := w.retry(ctx, "read dependencies of task "+t.ID, func(c context.Context) (err error) {
			tasks, err = w.env.Ledger.Tasks(c, ledger.TaskFilter{IDs: ask})
			return err
		})
		if err != nil {
			return nil, err
		}
		level = nil
		for _, d := range tasks {
			// A commit of another repository cannot be merged here; its own dependencies may be.
			if d.Result != nil && d.Result.Commit != "" && w.sameRepo(ctx, d.Owner) {
				found[d.ID] = d.Result.Commit
				continue
			}
			level = append(level, d.DependsOn...)
		}
	}
	ids := make([]string, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, byNumber)
	var commits []string
	for _, id := range ids {
		if !slices.Contains(commits, found[id]) {
			commits = append(commits, found[id])
		}
	}
	return commits, nil
}

// sameRepo reports whether the member of a session works on the same repository as this worker. An
// unknown member counts as one: git reports the difference.
func (w *worker) sameRepo(ctx context.Context, session string) bool {
	if session == "" || session == w.id.Session {
		return true
	}
	var me, other ledger.Member
	err := w.retry(ctx, "read the repository of a dependency", func(c context.Context) (err error) {
		if me, err = w.env.Ledger.MemberBySession(c, w.id.Session); err == nil {
			other, err = w.env.Ledger.MemberBySession(c, session)
		}
		return err
	})
	return err != nil || me.Spec.Repo == other.Spec.Repo
}

// byNumber sorts task ids as numbers, followed by others as text.
func byNumber(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return x - y
	}
	return strings.Compare(a, b)
}

// commit commits the changes of the command, also of a failed one: otherwise the next task of this
// worker would include them. Commits made by the command itself are found by comparing the head.
func (w *worker) commit(ctx context.Context, t ledger.Task, ok bool, before string, res *ledger.Result) error {
	ws := w.env.Workspace
	if ws == nil {
		return nil
	}
	subject := "task " + t.ID + ": " + oneLine(t.Subject)
	if !ok {
		subject += " (failed)"
	}
	sha, files, changed, err := ws.Commit(ctx, subject+"\n\n"+w.trailers(t))
	if err != nil {
		return err
	}
	if changed {
		res.Commit, res.Files = sha, files[:min(len(files), maxFiles)]
		return nil
	}
	head, err := ws.Head(ctx)
	if err != nil {
		return err
	}
	// An earlier attempt may have done the work here and died before it committed (it was committed
	// as left over) or before it reported: dependents of this task need that commit, though this
	// attempt has changed nothing.
	if head != before || t.Attempt > 1 {
		res.Commit = head
	}
	return nil
}

// checkpoint saves the state of the worktree if the workspace supports that.
func (w *worker) checkpoint(ctx context.Context, why string) {
	c, ok := w.env.Workspace.(Checkpointer)
	if !ok || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkpointLimit)
	defer cancel()
	if err := c.Checkpoint(ctx, why); err != nil && ctx.Err() == nil {
		w.out.line("save the state of the worktree: %v", err)
	}
}

// save takes the checkpoint that is owed after a task. It waits until the worker knows whether it
// has come to rest, so that one look at the worktree serves both; the next task begins after it.
func (w *worker) save(ctx context.Context) {
	why := w.unsaved
	if w.unsaved = ""; why != "" {
		w.checkpoint(ctx, why)
	}
}

// trailers returns the commit trailers that identify the task, attempt and agent.
func (w *worker) trailers(t ledger.Task) string {
	return fmt.Sprintf("Teamctl-Task: %s\nTeamctl-Attempt: %d\nTeamctl-Agent: %s\n", t.ID, t.Attempt, w.id.AgentID)
}

package ledger

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlDepsOpen   = `SELECT d.dependsOn FROM task_deps d JOIN tasks x ON x.id = d.dependsOn WHERE d.task = ? AND x.status <> 'completed' ORDER BY d.pos`
	sqlDepAdd     = `INSERT INTO task_deps(task, dependsOn, pos) VALUES (?1, ?2, (SELECT coalesce(max(pos), -1) + 1 FROM task_deps WHERE task = ?1)) ON CONFLICT DO NOTHING`
	sqlDepDrop    = `DELETE FROM task_deps WHERE task = ? AND dependsOn = ?`
	sqlDependents = `SELECT d.task FROM task_deps d JOIN tasks t ON t.id = d.task WHERE d.dependsOn = ? ORDER BY t.seq`
	sqlTaskDrop   = `DELETE FROM tasks WHERE id = ?`
	// The columns repeat the rows.
	sqlDepsMirror = `UPDATE tasks SET
		dependsOn = (SELECT json_group_array(dependsOn ORDER BY pos) FROM task_deps WHERE task = tasks.id),
		blockedBy = (SELECT json_group_array(d.dependsOn ORDER BY d.pos) FROM task_deps d JOIN tasks x ON x.id = d.dependsOn
			WHERE d.task = tasks.id AND x.status <> 'completed'),
		unmet = (SELECT count(*) FROM task_deps d JOIN tasks x ON x.id = d.dependsOn
			WHERE d.task = tasks.id AND x.status <> 'completed')
		WHERE id = ?`
)

type depsArgs struct {
	ID   string   `json:"id"`
	Deps []string `json:"deps"`
	By   string   `json:"by"`
}

// AddDeps adds dependencies to a pending task. Errors: CodeNotFound
// task_not_found, CodeInvalid dependency_cycle with the cycle, CodeConflict
// bad_status if the task is not pending.
func (l *Ledger) AddDeps(ctx context.Context, id string, deps []string, by string) (Task, error) {
	return write[Task](ctx, l, opTaskDepsAdd, depsArgs{id, deps, by})
}

// RemoveDeps removes dependencies from a pending task; one that it does not
// have is not an error.
func (l *Ledger) RemoveDeps(ctx context.Context, id string, deps []string, by string) (Task, error) {
	return write[Task](ctx, l, opTaskDepsRemove, depsArgs{id, deps, by})
}

// DeleteTask deletes an unclaimed task, removes it from the dependencies of
// others, and returns the ids of those that became ready. Its id is never
// reused. CodeConflict already_claimed while it is claimed.
func (l *Ledger) DeleteTask(ctx context.Context, id string) (ready []string, err error) {
	return write[[]string](ctx, l, opTaskDelete, id)
}

func addDeps(t *tx, a depsArgs) (Task, error) {
	task, err := t.pendingTask(a.ID)
	if err != nil {
		return task, err
	}
	for _, dep := range a.Deps {
		if _, err := t.task(dep); err != nil {
			return task, err
		}
		path, err := t.pathTo(dep, task.ID)
		if err != nil {
			return task, err
		}
		if path != nil {
			return task, errCycle(append([]string{task.ID}, path...))
		}
		if _, err := t.exec(sqlDepAdd, task.ID, dep); err != nil {
			return task, err
		}
	}
	return t.mirrored(task, a)
}

func removeDeps(t *tx, a depsArgs) (Task, error) {
	task, err := t.pendingTask(a.ID)
	if err != nil {
		return task, err
	}
	for _, dep := range a.Deps {
		if _, err := t.exec(sqlDepDrop, task.ID, dep); err != nil {
			return task, err
		}
	}
	return t.mirrored(task, a)
}

func (t *tx) pendingTask(id string) (Task, error) {
	task, err := t.task(id)
	if err == nil && task.Status != team.TaskPending {
		e := errStatus(task, "only a pending task can change its dependencies")
		if task.Status == team.TaskClaimed || task.Status == team.TaskInProgress {
			e = e.WithHint("teamctl task release " + task.ID)
		}
		err = e
	}
	return task, err
}

// mirrored updates the columns of a task from its rows and logs it.
func (t *tx) mirrored(before Task, a depsArgs) (Task, error) {
	if _, err := t.exec(sqlDepsMirror, before.ID); err != nil {
		return before, err
	}
	after, err := t.task(before.ID)
	if err != nil || slices.Equal(before.DependsOn, after.DependsOn) {
		return after, err
	}
	who := orDefault(a.By, t.who)
	if err := t.event(Event{Who: who, What: team.EventTaskDeps, ID: after.ID,
		Before: mustJSON(before.DependsOn), After: mustJSON(after.DependsOn)}); err != nil {
		return after, err
	}
	if len(before.BlockedBy) > 0 && len(after.BlockedBy) == 0 {
		_, err = t.unblocked([]string{after.ID}, who)
	}
	return after, err
}

// pathTo returns the chain of dependencies from one task to another, both
// included, or nil. A completed task waits for nothing, so the search stops
// there.
func (t *tx) pathTo(from, to string) ([]string, error) {
	came := map[string]string{from: ""}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		if todo[0] == to {
			var path []string
			for at := to; at != ""; at = came[at] {
				path = append(path, at)
			}
			slices.Reverse(path)
			return path, nil
		}
		next, err := column[string](t, sqlDepsOpen, todo[0])
		if err != nil {
			return nil, err
		}
		for _, id := range next {
			if _, seen := came[id]; !seen {
				came[id] = todo[0]
				todo = append(todo, id)
			}
		}
	}
	return nil, nil
}

func deleteTask(t *tx, id string) ([]string, error) {
	task, err := t.task(id)
	if err != nil {
		return nil, err
	}
	if task.Status == team.TaskClaimed || task.Status == team.TaskInProgress {
		return nil, team.Errorf(team.CodeConflict, "task %s is %s by %s", id, task.Status, task.OwnerName).
			WithReason(team.ReasonAlreadyClaimed).WithHint("teamctl task cancel " + id)
	}
	dependents, err := column[string](t, sqlDependents, id)
	if err != nil {
		return nil, err
	}
	if _, err := t.exec(sqlTaskDrop, id); err != nil {
		return nil, err
	}
	if err := t.taskEvent(team.EventTaskDeleted, "", id, task.Status, "", nil); err != nil {
		return nil, err
	}
	var ready []string
	for _, d := range dependents {
		if _, err := t.exec(sqlDepsMirror, d); err != nil {
			return nil, err
		}
		after, err := t.task(d)
		if err != nil {
			return nil, err
		}
		if task.Status != team.TaskCompleted && after.Status == team.TaskPending && len(after.BlockedBy) == 0 {
			ready = append(ready, d)
		}
	}
	return t.unblocked(ready, "")
}

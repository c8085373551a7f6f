package ledger

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/teamctl/teamctl/team"
)

const (
	// A foreign program may have inserted rows with ids of its own.
	sqlTaskLast = `SELECT max(value, (SELECT coalesce(max(seq), 0) FROM tasks)) FROM counters WHERE name = 'task'`
	sqlTaskMark = `UPDATE counters SET value = ? WHERE name = 'task'`
	sqlTaskPut  = `INSERT INTO tasks(id, subject, description, activeForm, status, dependsOn, blockedBy, metadata, createdAt, priority, unmet, verify, verifyBy, maxRetries, retryBackoff)
		VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlTaskStatus = `SELECT status FROM tasks WHERE id = ?`
	sqlDepPut     = `INSERT INTO task_deps(task, dependsOn, pos) VALUES (?, ?, ?)`
)

// CreateTasks creates all tasks of the batch or none, in order, and returns
// them as created. by is the name of the creator. Errors: CodeInvalid (no
// subject, metadata not an object, a duplicate ref, reason dependency_cycle),
// CodeLimit (a text too long), CodeNotFound (task_not_found: an unknown
// dependency).
func (l *Ledger) CreateTasks(ctx context.Context, tasks []NewTask, by string) ([]Task, error) {
	made, err := write[[]Task](ctx, l, opTasksCreate, createArgs{tasks, by})
	if err != nil {
		return nil, err
	}
	for i := range made {
		n := &tasks[i]
		made[i].Subject, made[i].Description, made[i].ActiveForm = n.Subject, n.Description, n.ActiveForm
		made[i].Verify, made[i].Metadata = n.Verify, n.Metadata
	}
	return made, nil
}

type createArgs struct {
	Tasks []NewTask `json:"tasks"`
	By    string    `json:"by"`
}

// createTasks omits the texts from its result: it is stored for retries, and
// the caller has them.
func createTasks(t *tx, a createArgs) ([]Task, error) {
	refs := make(map[string]int, len(a.Tasks))
	for i, n := range a.Tasks {
		if err := n.check(); err != nil {
			return nil, err
		}
		if n.Ref == "" {
			continue
		}
		if _, twice := refs[n.Ref]; twice {
			return nil, team.Errorf(team.CodeInvalid, "two tasks of the batch have the ref %q", n.Ref)
		}
		refs[n.Ref] = i
	}
	if err := checkBatchCycle(a.Tasks, refs); err != nil {
		return nil, err
	}
	last, _, err := value[int64](t, sqlTaskLast)
	if err != nil {
		return nil, err
	}
	made := make([]Task, len(a.Tasks))
	for i := range a.Tasks {
		made[i] = Task{ID: itoa(last + int64(i) + 1), Status: team.TaskPending, Priority: a.Tasks[i].Priority,
			CreatedAt: t.now, DependsOn: []string{}, BlockedBy: []string{}}
		if a.Tasks[i].Verify != "" {
			made[i].VerifyBy = orDefault(a.By, t.who)
		}
		if made[i].RetryPolicy, err = a.Tasks[i].policy(); err != nil {
			return nil, err
		}
	}
	for i, n := range a.Tasks { // before the first insert, so that a dependency cannot match an id of this batch
		if err := t.resolve(&made[i], n, refs, made); err != nil {
			return nil, err
		}
	}
	for i, n := range a.Tasks {
		if err := t.insertTask(made[i], n, a.By); err != nil {
			return nil, err
		}
	}
	// A ref may point forward, so insert every task before the first edge.
	for _, task := range made {
		for pos, dep := range task.DependsOn {
			if _, err := t.exec(sqlDepPut, task.ID, dep, pos); err != nil {
				return nil, err
			}
		}
	}
	if len(made) == 0 {
		return made, nil
	}
	_, err = t.exec(sqlTaskMark, last+int64(len(made)))
	return made, err
}

// resolve sets the ids that a new task depends on, and those that block it.
func (t *tx) resolve(task *Task, n NewTask, refs map[string]int, batch []Task) error {
	seen := map[string]bool{}
	for _, dep := range n.DependsOn {
		id, open := dep, true
		if i, ok := refs[dep]; ok {
			id = batch[i].ID
		} else {
			status, found, err := value[team.TaskStatus](t, sqlTaskStatus, dep)
			if err != nil {
				return err
			}
			if !found {
				return errNoTask(dep).WithHint("refer to a task of the same batch by its ref; teamctl task ls")
			}
			open = status != team.TaskCompleted
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		task.DependsOn = append(task.DependsOn, id)
		if open {
			task.BlockedBy = append(task.BlockedBy, id)
		}
	}
	return nil
}

func (t *tx) insertTask(task Task, n NewTask, by string) error {
	_, err := t.exec(sqlTaskPut, task.ID, n.Subject, n.Description, orNull(n.ActiveForm),
		mustJSON(task.DependsOn), mustJSON(task.BlockedBy), jsonOrNull(n.Metadata),
		task.CreatedAt, task.Priority, len(task.BlockedBy), n.Verify, task.VerifyBy, task.MaxRetries, task.RetryBackoff)
	if err != nil {
		return err
	}
	return t.taskEvent(team.EventTaskCreated, by, task.ID, "", team.TaskPending, struct {
		Subject string `json:"subject"`
	}{n.Subject})
}

func (n NewTask) check() error {
	if strings.TrimSpace(n.Subject) == "" {
		return team.Errorf(team.CodeInvalid, "a task needs a subject")
	}
	if err := checkTexts(n.Subject, n.Description, n.ActiveForm); err != nil {
		return err
	}
	_, err := object("the metadata of a task", n.Metadata)
	return err
}

func checkTexts(subject, description, activeForm string) error {
	for _, f := range []struct {
		name, text string
		limit      int
	}{
		{"subject", subject, team.MaxSubject},
		{"description", description, team.MaxDescription},
		{"activeForm", activeForm, team.MaxActiveForm},
	} {
		if n := utf8.RuneCountInString(f.text); n > f.limit {
			return team.Errorf(team.CodeLimit, "the %s of a task has %d characters, the limit is %d", f.name, n, f.limit).
				WithReason(team.ReasonTooLong)
		}
	}
	return nil
}

// checkBatchCycle returns an error for a batch whose refs form a dependency
// cycle. It repeatedly removes tasks without remaining dependencies until there
// are none.
func checkBatchCycle(tasks []NewTask, refs map[string]int) error {
	needs := make([]int, len(tasks)) // in-batch dependencies not yet removed
	neededBy := make([][]int, len(tasks))
	for i, n := range tasks {
		for _, dep := range n.DependsOn {
			if j, ok := refs[dep]; ok {
				needs[i]++
				neededBy[j] = append(neededBy[j], i)
			}
		}
	}
	var free []int
	for i, n := range needs {
		if n == 0 {
			free = append(free, i)
		}
	}
	left := len(tasks)
	for ; len(free) > 0; left-- {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, k := range neededBy[i] {
			if needs[k]--; needs[k] == 0 {
				free = append(free, k)
			}
		}
	}
	if left == 0 {
		return nil
	}
	return errCycle(walkCycle(tasks, refs, needs))
}

// walkCycle follows the remaining dependencies until it returns to a task.
func walkCycle(tasks []NewTask, refs map[string]int, needs []int) []string {
	at := 0
	for needs[at] == 0 {
		at++
	}
	step := map[int]int{} // task -> its index in path
	var path []string
	for {
		if first, back := step[at]; back {
			return append(path[first:], tasks[at].Ref)
		}
		step[at] = len(path)
		path = append(path, tasks[at].Ref)
		for _, dep := range tasks[at].DependsOn {
			if j, ok := refs[dep]; ok && needs[j] > 0 {
				at = j
				break
			}
		}
	}
}

func errCycle(path []string) error {
	return team.Errorf(team.CodeInvalid, "the dependencies would form a cycle: %s", strings.Join(path, " -> ")).
		WithReason(team.ReasonCycle)
}

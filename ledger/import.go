package ledger

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlTaskImport = `INSERT INTO tasks(id, subject, description, activeForm, status, owner, ownerName, dependsOn, blockedBy, metadata,
		priority, verify, verifyBy, attempt, createdAt, claimedAt, startedAt, completedAt, result, maxRetries, retryBackoff, retries)
		VALUES (?, ?, ?, ?, ?, ?, ?, '[]', '[]', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlMemberNamed = `SELECT sessionKey FROM members WHERE name = ? COLLATE NOCASE AND removedAt IS NULL`
	sqlHighWater   = `SELECT value FROM counters WHERE name = 'task'`
	sqlTaskExists  = `SELECT count(*) FROM tasks WHERE id = ?`
)

// TaskIDPattern returns the pattern of a task id, also as part of a file name.
var TaskIDPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[1-9][0-9]{0,17}$`) })

// ImportIn is a board to import: tasks as returned by Tasks of another ledger.
type ImportIn struct {
	Tasks     []Task `json:"tasks"`
	HighWater int64  `json:"highwatermark,omitempty"` // no id up to it is assigned again
	Renumber  bool   `json:"renumber,omitempty"`      // assign new ids instead of keeping them
	By        string `json:"by,omitempty"`
}

// Imported is the result of an import.
type Imported struct {
	IDs map[string]string `json:"ids"` // old id -> new id
}

// ImportTasks imports all tasks of a board or none, with their states, times,
// results and dependencies, which may also name existing tasks. Claims are not
// imported: a claimed task becomes pending, and assigned if a member of that
// name is on the roster. Errors: CodeInvalid (an id, a state,
// dependency_cycle), CodeConflict id_taken, CodeNotFound task_not_found for an
// unknown dependency, CodeLimit as CreateTasks.
func (l *Ledger) ImportTasks(ctx context.Context, in ImportIn) (Imported, error) {
	return write[Imported](ctx, l, opTasksImport, in)
}

// HighWater returns the greatest task id ever assigned.
func (l *Ledger) HighWater(ctx context.Context) (int64, error) {
	rows, err := read(ctx, l.db, "read the high-water mark", scanOne[int64], sqlHighWater)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0], nil
}

func importTasks(t *tx, in ImportIn) (Imported, error) {
	out := Imported{IDs: make(map[string]string, len(in.Tasks))}
	for i := range in.Tasks { // "#3" names the same task as "3", also in a cycle
		in.Tasks[i].DependsOn = bare(in.Tasks[i].DependsOn)
	}
	last, _, err := value[int64](t, sqlTaskLast)
	if err != nil {
		return out, err
	}
	batch, refs, high := make([]NewTask, len(in.Tasks)), make(map[string]int, len(in.Tasks)), max(last, in.HighWater)
	for i, task := range in.Tasks {
		id, err := t.importID(task, refs, in.Renumber, last, i)
		if err != nil {
			return out, err
		}
		refs[task.ID], out.IDs[task.ID], high = i, itoa(id), max(high, id)
		batch[i] = NewTask{Ref: task.ID, Subject: task.Subject, Description: task.Description, ActiveForm: task.ActiveForm,
			Metadata: task.Metadata, DependsOn: task.DependsOn, RetryPolicy: task.RetryPolicy}
		if err := batch[i].check(); err != nil {
			return out, err
		}
		if _, err := batch[i].policy(); err != nil {
			return out, err
		}
	}
	if err := checkBatchCycle(batch, refs); err != nil {
		return out, err
	}
	for _, task := range in.Tasks {
		if err := t.importTask(task, out.IDs[task.ID], in.By); err != nil {
			return out, err
		}
	}
	for _, task := range in.Tasks {
		if err := t.importDeps(task, out.IDs); err != nil {
			return out, err
		}
	}
	_, err = t.exec(sqlTaskMark, high)
	return out, err
}

// bare returns ids without a leading "#".
func bare(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = strings.TrimPrefix(id, "#")
	}
	return out
}

// importID returns the id for task number i of an import.
func (t *tx) importID(task Task, seen map[string]int, renumber bool, last int64, i int) (int64, error) {
	if !TaskIDPattern().MatchString(task.ID) {
		return 0, team.Errorf(team.CodeInvalid, "invalid task id %q", task.ID).WithReason(team.ReasonBadTaskID)
	}
	if _, twice := seen[task.ID]; twice {
		return 0, team.Errorf(team.CodeInvalid, "duplicate task %s", task.ID).WithReason(team.ReasonBadTaskID)
	}
	if renumber {
		return last + int64(i) + 1, nil
	}
	id := seqNumber(task.ID)
	if id <= last {
		return 0, team.Errorf(team.CodeConflict, "task id %s is or was in use in this team", task.ID).WithReason(team.ReasonIDTaken).
			WithHint("teamctl task import --renumber gives the tasks new ids")
	}
	return id, nil
}

func seqNumber(id string) (n int64) {
	for _, c := range id { // the pattern allows only digits
		n = n*10 + int64(c-'0')
	}
	return n
}

func (t *tx) importTask(task Task, id, by string) error {
	before := task.Status
	switch task.Status {
	case team.TaskClaimed, team.TaskInProgress:
		task.Status, task.ClaimedAt, task.StartedAt = team.TaskPending, 0, 0
	case team.TaskPending, team.TaskCompleted, team.TaskFailed:
	default:
		return team.Errorf(team.CodeInvalid, "task %s has the unknown status %q", task.ID, task.Status)
	}
	task.Owner = ""
	if task.OwnerName != "" {
		session, _, err := value[string](t, sqlMemberNamed, task.OwnerName)
		if err != nil {
			return err
		}
		task.Owner = session
		if session == "" && task.Status == team.TaskPending {
			task.OwnerName = ""
		}
	}
	if task.CreatedAt <= 0 {
		task.CreatedAt = t.now
	}
	if task.CompletedAt <= 0 && (task.Status == team.TaskCompleted || task.Status == team.TaskFailed) {
		task.CompletedAt = t.now
	}
	verifyBy := "" // the importer is responsible for the command
	if task.Verify != "" {
		verifyBy = orDefault(by, t.who)
	}
	var result any
	if task.Result != nil {
		result = mustJSON(task.Result)
	}
	if _, err := t.exec(sqlTaskImport, id, task.Subject, task.Description, orNull(task.ActiveForm), task.Status,
		orNull(task.Owner), orNull(task.OwnerName), jsonOrNull(task.Metadata), task.Priority, task.Verify, verifyBy, max(task.Attempt, 0),
		task.CreatedAt, orNull(task.ClaimedAt), orNull(task.StartedAt), orNull(task.CompletedAt), result,
		task.MaxRetries, task.RetryBackoff, max(task.Retries, 0)); err != nil {
		return err
	}
	return t.taskEvent(team.EventTaskImported, orDefault(by, t.who), id, before, task.Status, struct {
		From    string `json:"from"`
		Subject string `json:"subject"`
	}{task.ID, task.Subject})
}

func (t *tx) importDeps(task Task, ids map[string]string) error {
	id := ids[task.ID]
	for pos, dep := range task.DependsOn {
		to, inside := ids[dep]
		if !inside {
			to = dep
			if n, _, err := value[int](t, sqlTaskExists, to); err != nil || n == 0 {
				if err == nil {
					err = errNoTask(dep).WithHint("task " + task.ID + " depends on it; import it too")
				}
				return err
			}
		}
		if to == id {
			return errCycle([]string{task.ID, task.ID})
		}
		if _, err := t.exec(sqlDepPut+` ON CONFLICT DO NOTHING`, id, to, pos); err != nil {
			return err
		}
	}
	_, err := t.exec(sqlDepsMirror, id)
	return err
}

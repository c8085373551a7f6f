package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/mkdirlock"
	"github.com/teamctl/teamctl/internal/taskfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A directory of tasks in the format of other clients: one <id>.json per task, the highest
// assigned id in .highwatermark, and .lock. Its statuses are pending, in_progress and completed;
// teamctl's further fields of a task are under the key "teamctl" of its metadata, which other
// clients preserve.

// Names in a directory of tasks.
const (
	taskDirLock = ".lock"
	oursKey     = "teamctl"
)

// taskOurs has the fields that the other format lacks.
type taskOurs struct {
	Status      team.TaskStatus `json:"status,omitempty"`
	Priority    int             `json:"priority,omitempty"`
	Verify      string          `json:"verify,omitempty"`
	Attempt     int             `json:"attempt,omitempty"`
	CreatedAt   int64           `json:"createdAt,omitempty"`
	ClaimedAt   int64           `json:"claimedAt,omitempty"`
	StartedAt   int64           `json:"startedAt,omitempty"`
	CompletedAt int64           `json:"completedAt,omitempty"`
	Result      *ledger.Result  `json:"result,omitempty"`
	ledger.RetryPolicy
	Retries int `json:"retries,omitempty"`
}

// WriteTaskDir writes a board to a directory, and creates the directory if it is missing. It
// leaves files of tasks alone that are not on the board.
func WriteTaskDir(ctx context.Context, dir string, d TaskDump) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return team.Errorf(team.CodeUnavailable, "make %s: %w", dir, err)
	}
	lock, err := filelock.Lock(ctx, filepath.Join(dir, taskDirLock))
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "lock %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	blocks := map[string][]string{}
	for _, t := range d.Tasks {
		for _, dep := range t.DependsOn {
			blocks[dep] = append(blocks[dep], t.ID)
		}
	}
	for _, t := range d.Tasks {
		if err := writeTask(ctx, filepath.Join(dir, t.ID+".json"), t, blocks[t.ID]); err != nil {
			return err
		}
	}
	high, err := readHighWater(dir)
	if err != nil {
		return err
	}
	return taskfile.SetHighWater(dir, max(high, d.HighWater), true)
}

// putTask makes a file say what a task is; other keys of the file stay.
func putTask(f *taskfile.File, t ledger.Task, blocks []string) error {
	v := taskfile.View{Subject: t.Subject, Description: t.Description, ActiveForm: t.ActiveForm, Owner: t.OwnerName,
		Status: string(t.Status), BlockedBy: t.DependsOn}
	ours := taskOurs{Priority: t.Priority, Verify: t.Verify, Attempt: t.Attempt, CreatedAt: t.CreatedAt, ClaimedAt: t.ClaimedAt,
		StartedAt: t.StartedAt, CompletedAt: t.CompletedAt, Result: t.Result, RetryPolicy: t.RetryPolicy, Retries: t.Retries}
	switch t.Status {
	case team.TaskClaimed:
		v.Status, ours.Status = taskfile.InProgress, t.Status
	case team.TaskFailed: // it must not be claimed, and its dependents stay blocked
		v.Status, ours.Status = taskfile.InProgress, t.Status
	case team.TaskPending, team.TaskInProgress, team.TaskCompleted:
	}
	f.Meta = nil
	if len(t.Metadata) > 0 {
		if err := json.Unmarshal(t.Metadata, &f.Meta); err != nil {
			return fmt.Errorf("read the metadata of task %s: %w", t.ID, err)
		}
	}
	if f.Meta == nil {
		f.Meta = map[string]json.RawMessage{}
	}
	raw, err := json.Marshal(ours)
	if err != nil {
		return fmt.Errorf("encode task %s: %w", t.ID, err)
	}
	f.Meta[oursKey] = raw
	if err := errors.Join(f.Set(v), f.SetBlocks(blocks)); err != nil {
		return fmt.Errorf("encode task %s: %w", t.ID, err)
	}
	return nil
}

// foreignTaskWait bounds the wait for a task's lock held by another client.
const foreignTaskWait = 15 * time.Second

// writeTask changes or creates one file under its lock, which other clients use as well.
func writeTask(ctx context.Context, path string, t ledger.Task, blocks []string) error {
	ctx, cancel := context.WithTimeout(ctx, foreignTaskWait)
	defer cancel()
	err := mkdirlock.Hold(ctx, path+".lock", 0o700, func(held func() error) error {
		f := taskfile.File{ID: t.ID}
		was, err := os.ReadFile(path)
		if err == nil {
			if old, _, err := taskfile.Parse(t.ID, was); err == nil { // else it is no task, and goes
				f = old
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := putTask(&f, t, blocks); err != nil {
			return err
		}
		data, err := f.Text()
		if err != nil {
			return err
		}
		if err := held(); err != nil {
			return err
		}
		return atomicfile.Write(path, data, 0o600, true)
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return team.Errorf(team.CodeTimeout, "%s is locked by another program", path).WithReason(team.ReasonTaskLocked)
	}
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "%w", err)
	}
	return nil
}

// ReadTaskDir reads a board from a directory. A file that is not a task is an error: an import is
// all or nothing. It waits for a file that another program is writing.
func ReadTaskDir(ctx context.Context, dir string) (TaskDump, error) {
	d := TaskDump{Format: dumpFormat, Version: dumpVersion}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return d, team.Errorf(team.CodeNotFound, "read tasks: %w", err)
	}
	blocks := map[string][]string{}
	for _, e := range entries {
		id, isTask := taskfile.IDOf(e)
		if !isTask {
			continue
		}
		path := filepath.Join(dir, e.Name())
		t, ahead, err := readTask(ctx, path, id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return d, err
		}
		d.Tasks = append(d.Tasks, t)
		blocks[id] = ahead
	}
	if d.HighWater, err = readHighWater(dir); err != nil {
		return d, err
	}
	addBlocks(d.Tasks, blocks)
	slices.SortFunc(d.Tasks, func(a, b ledger.Task) int { return taskfile.Compare(a.ID, b.ID) })
	return d, nil
}

// readTask reads one file. A file that does not parse may be half written: other clients write in
// place, and hold its lock meanwhile.
func readTask(ctx context.Context, path, id string) (t ledger.Task, blocks []string, err error) {
	fi, err := os.Lstat(path)
	if err == nil && !fi.Mode().IsRegular() {
		return t, nil, team.Errorf(team.CodeInvalid, "%s is not a regular file", path)
	}
	read := func() error {
		data, err := os.ReadFile(path)
		if err != nil {
			return team.Errorf(team.CodeUnavailable, "read tasks: %w", err)
		}
		if t, blocks, err = unmarshalTask(id, data); err != nil {
			return team.Errorf(team.CodeInvalid, "%s: %w", path, err).WithReason(team.ReasonCorruptTask)
		}
		return nil
	}
	torn := read()
	if team.ReasonOf(torn) != "corrupt_task" {
		return t, blocks, torn
	}
	ctx, cancel := context.WithTimeout(ctx, foreignTaskWait)
	defer cancel()
	err = mkdirlock.Hold(ctx, path+".lock", 0o700, func(func() error) error {
		torn = read()
		return nil
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return t, nil, team.Errorf(team.CodeTimeout, "%s is locked by another program", path).WithReason(team.ReasonTaskLocked)
	case ctx.Err() != nil:
		return t, nil, context.Cause(ctx)
	}
	return t, blocks, torn // without a lock, what was read without it
}

func unmarshalTask(id string, data []byte) (t ledger.Task, blocks []string, err error) {
	f, says, err := taskfile.Parse(id, data)
	if err != nil {
		return t, nil, err
	}
	if says != id {
		return t, nil, fmt.Errorf("its id is task %q", says)
	}
	v := f.View
	t = ledger.Task{ID: id, Subject: v.Subject, Description: v.Description, ActiveForm: v.ActiveForm, OwnerName: v.Owner,
		Status: team.TaskStatus(v.Status), DependsOn: append([]string{}, v.BlockedBy...)}
	if raw, ok := f.Meta[oursKey]; ok {
		var ours taskOurs
		if err := json.Unmarshal(raw, &ours); err != nil {
			return t, nil, err
		}
		delete(f.Meta, oursKey)
		t.Priority, t.Verify, t.Attempt, t.CreatedAt, t.ClaimedAt = ours.Priority, ours.Verify, ours.Attempt, ours.CreatedAt, ours.ClaimedAt
		t.StartedAt, t.CompletedAt, t.Result, t.RetryPolicy, t.Retries = ours.StartedAt, ours.CompletedAt, ours.Result, ours.RetryPolicy, ours.Retries
		if ours.Status != "" && t.Status == team.TaskInProgress { // the status has not changed since
			t.Status = ours.Status
		}
	}
	if len(f.Meta) > 0 {
		raw, err := json.Marshal(f.Meta)
		if err != nil {
			return t, nil, err
		}
		t.Metadata = raw
	}
	return t, f.Blocks, nil
}

// addBlocks adds the edges that only the blocking task has.
func addBlocks(tasks []ledger.Task, blocks map[string][]string) {
	for i := range tasks {
		t := &tasks[i]
		for _, by := range tasks {
			if slices.Contains(blocks[by.ID], t.ID) && !slices.Contains(t.DependsOn, by.ID) {
				t.DependsOn = append(t.DependsOn, by.ID)
			}
		}
	}
}

func readHighWater(dir string) (int64, error) {
	n, ok, err := taskfile.HighWater(dir)
	if err != nil {
		return 0, team.Errorf(team.CodeUnavailable, "read tasks: %w", err)
	}
	if !ok {
		return 0, team.Errorf(team.CodeInvalid, "the highest id in %s is not a number", dir)
	}
	return n, nil
}

// WriteFile writes a whole file for a person, or leaves the old one unchanged.
func WriteFile(path string, data []byte) error {
	if err := atomicfile.Write(path, data, 0o600, true); err != nil {
		return team.Errorf(team.CodeUnavailable, "%w", err)
	}
	return nil
}

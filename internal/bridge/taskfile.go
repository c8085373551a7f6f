package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/mkdirlock"
	"github.com/teamctl/teamctl/internal/taskfile"
	"github.com/teamctl/teamctl/team"
)

// nativeTask is a task file of the native team.
type nativeTask struct{ taskfile.File }

// Keys of metadata: the origin of a mirrored task, and the program's mark of an entry that is not
// a task (one of its subagents).
const (
	originKey   = "teamctl_bridge"
	internalKey = "_internal"
)

// origin is where a task was created.
type origin struct {
	Team string `json:"team"`
	Task string `json:"task"`
}

func (t nativeTask) origin() (o origin, ok bool) {
	return o, json.Unmarshal(t.Meta[originKey], &o) == nil && o.Task != ""
}

// parseTask parses a file and sorts the dependencies, so that views can be compared.
func parseTask(id string, data []byte) (nativeTask, error) {
	f, _, err := taskfile.Parse(id, data)
	slices.Sort(f.View.BlockedBy)
	f.View.BlockedBy = slices.Compact(f.View.BlockedBy)
	return nativeTask{f}, err
}

// readTasks reads the native tasks, in the order of their ids. whole is false if one is being
// written.
func (n native) readTasks() (all map[string]nativeTask, order []string, whole bool, err error) {
	entries, err := os.ReadDir(n.tasks())
	if err != nil {
		return nil, nil, false, unsettled(err)
	}
	all, whole = map[string]nativeTask{}, true
	for _, e := range entries {
		id, ok := taskfile.IDOf(e)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(n.tasks(), e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, false, unsettled(err)
		}
		t, err := parseTask(id, data)
		if err != nil {
			whole = false
			continue
		}
		all[id] = t
		order = append(order, id)
	}
	slices.SortFunc(order, taskfile.Compare)
	return all, order, whole, nil
}

func (n native) taskPath(id string) string { return filepath.Join(n.tasks(), id+".json") }

// editTask changes one task file under its lock: edit gets the current task and returns whether it
// has changed it. A file deleted meanwhile is fs.ErrNotExist.
func (n native) editTask(ctx context.Context, id string, edit func(*nativeTask) (bool, error)) error {
	return n.lockTask(ctx, id+".json.lock", func(held func() error) error {
		data, err := os.ReadFile(n.taskPath(id))
		if err != nil {
			return err
		}
		t, err := parseTask(id, data)
		if err != nil {
			return unsettled(err)
		}
		changed, err := edit(&t)
		if err != nil || !changed {
			return err
		}
		text, err := t.Text()
		if err != nil {
			return err
		}
		if err := held(); err != nil {
			return err
		}
		return atomicfile.Write(n.taskPath(id), text, 0o600, true)
	})
}

func (n native) lockTask(ctx context.Context, lock string, do func(func() error) error) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	err := mkdirlock.Hold(ctx, filepath.Join(n.tasks(), lock), lockMode, do)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !notWhole(err) {
		err = unsettled(fmt.Errorf("change the tasks in %s: %w", n.tasks(), err))
	}
	return err
}

// removeTask deletes an unchanged task file.
func (n native) removeTask(ctx context.Context, id string) error {
	err := n.lockTask(ctx, id+".json.lock", func(func() error) error { return os.Remove(n.taskPath(id)) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// createTask creates a new task file and returns its id. The file appears complete and never
// replaces another, even if another program assigns the same id.
func (n native) createTask(ctx context.Context, make func(id string) (nativeTask, error)) (id string, err error) {
	err = n.lockTask(ctx, ".lock.lock", func(func() error) error {
		last, err := n.lastID()
		if err != nil {
			return err
		}
		for next := last + 1; ; next++ {
			id = strconv.FormatInt(next, 10)
			t, err := make(id)
			if err != nil {
				return err
			}
			text, err := t.Text()
			if err != nil {
				return err
			}
			tmp := filepath.Join(n.tasks(), ".teamctl-"+team.NewUUID())
			if err := atomicfile.Write(tmp, text, 0o600, true); err != nil {
				return err
			}
			err = os.Link(tmp, n.taskPath(id))
			if rerr := os.Remove(tmp); rerr != nil {
				err = errors.Join(err, rerr)
			}
			if errors.Is(err, fs.ErrExist) {
				continue
			}
			if err != nil {
				return err
			}
			return taskfile.SetHighWater(n.tasks(), next, true) // and the link is in the same directory
		}
	})
	return id, err
}

func (n native) lastID() (int64, error) {
	last, _, _ := taskfile.HighWater(n.tasks()) // without it the files say
	entries, err := os.ReadDir(n.tasks())
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if id, ok := taskfile.IDOf(e); ok {
			v, err := strconv.ParseInt(id, 10, 64)
			if err != nil {
				return 0, err
			}
			last = max(last, v)
		}
	}
	return last, nil
}

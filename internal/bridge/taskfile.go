package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/mkdirlock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// taskView is a task in a form that both sides share, in the native program's terms: its ids, its
// members' names, its statuses.
type taskView struct {
	Subject     string   `json:"subject"`
	Description string   `json:"description"`
	ActiveForm  string   `json:"activeForm,omitempty"`
	Owner       string   `json:"owner,omitempty"`
	Status      string   `json:"status"`
	BlockedBy   []string `json:"blockedBy,omitempty"` // sorted
}

func (v taskView) same(o taskView) bool {
	return v.Subject == o.Subject && v.Description == o.Description && v.ActiveForm == o.ActiveForm && v.Owner == o.Owner &&
		v.Status == o.Status && slices.Equal(v.BlockedBy, o.BlockedBy)
}

// Native statuses.
const (
	statusPending = "pending"
	statusWork    = "in_progress"
	statusDone    = "completed"
)

// nativeTask is a task file, including unknown keys.
type nativeTask struct {
	id   string
	view taskView
	obj  team.JSONObject
	meta map[string]json.RawMessage
}

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
	return o, json.Unmarshal(t.meta[originKey], &o) == nil && o.Task != ""
}

func parseTask(id string, data []byte) (t nativeTask, err error) {
	if t.obj, err = team.ParseJSONObject(data); err != nil {
		return t, err
	}
	t.id = id
	field := func(key string, v any) {
		if i := t.obj.Index(key); i >= 0 && err == nil && string(t.obj[i].Value) != "null" {
			err = json.Unmarshal(t.obj[i].Value, v)
		}
	}
	field("subject", &t.view.Subject)
	field("description", &t.view.Description)
	field("activeForm", &t.view.ActiveForm)
	field("owner", &t.view.Owner)
	field("status", &t.view.Status)
	field("blockedBy", &t.view.BlockedBy)
	field("metadata", &t.meta)
	slices.Sort(t.view.BlockedBy)
	t.view.BlockedBy = slices.Compact(t.view.BlockedBy)
	return t, err
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
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !ledger.TaskIDPattern().MatchString(id) || !e.Type().IsRegular() {
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
	slices.SortFunc(order, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return all, order, whole, nil
}

// set writes a view into the object, and leaves all other keys unchanged.
func (t *nativeTask) set(v taskView) error {
	t.view = v
	put := func(key string, value any, keep bool) error {
		if !keep {
			if i := t.obj.Index(key); i >= 0 {
				t.obj = slices.Delete(t.obj, i, i+1)
			}
			return nil
		}
		raw, err := marshal(value)
		if err == nil {
			t.obj.Set(key, raw)
		}
		return err
	}
	return errors.Join(
		put("id", t.id, true),
		put("subject", v.Subject, true),
		put("description", v.Description, true),
		put("activeForm", v.ActiveForm, v.ActiveForm != ""),
		put("owner", v.Owner, v.Owner != ""),
		put("status", v.Status, true),
		t.keep("blocks"),
		put("blockedBy", append([]string{}, v.BlockedBy...), true),
		put("metadata", t.meta, len(t.meta) > 0),
	)
}

// keep ensures that a list has its place in the order of the keys.
func (t *nativeTask) keep(key string) error {
	if t.obj.Index(key) < 0 {
		t.obj.Set(key, json.RawMessage("[]"))
	}
	return nil
}

func (t nativeTask) text() ([]byte, error) {
	var out bytes.Buffer
	err := json.Indent(&out, t.obj.AppendJSON(nil), "", "  ")
	return out.Bytes(), err
}

func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
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
		text, err := t.text()
		if err != nil {
			return err
		}
		if err := held(); err != nil {
			return err
		}
		return atomicfile.Write(n.taskPath(id), text, 0o600, false)
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

// highWater is the file with the highest assigned id.
const highWater = ".highwatermark"

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
			text, err := t.text()
			if err != nil {
				return err
			}
			tmp := filepath.Join(n.tasks(), ".teamctl-"+team.NewUUID())
			if err := atomicfile.Write(tmp, text, 0o600, false); err != nil {
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
			return atomicfile.Write(filepath.Join(n.tasks(), highWater), []byte(id), 0o600, false)
		}
	})
	return id, err
}

func (n native) lastID() (int64, error) {
	var last int64
	if data, err := os.ReadFile(filepath.Join(n.tasks(), highWater)); err == nil {
		if v, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil {
			last = v
		}
	}
	entries, err := os.ReadDir(n.tasks())
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && ledger.TaskIDPattern().MatchString(id) {
			v, err := strconv.ParseInt(id, 10, 64)
			if err != nil {
				return 0, err
			}
			last = max(last, v)
		}
	}
	return last, nil
}

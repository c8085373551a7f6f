// Package taskfile is the form in which Claude Code and programs like it keep tasks: a directory
// with one <id>.json each, the highest id that was ever given out in .highwatermark, and lock
// directories beside the files. A File keeps every key that it does not know, in its place, so that
// what others have written there survives a change.
package taskfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// View is what a file says of a task, in the words of the program: its ids, its members' names,
// its statuses.
type View struct {
	Subject     string   `json:"subject"`
	Description string   `json:"description"`
	ActiveForm  string   `json:"activeForm,omitempty"`
	Owner       string   `json:"owner,omitempty"`
	Status      string   `json:"status"`
	BlockedBy   []string `json:"blockedBy,omitempty"`
}

// Same reports whether two views are equal.
func (v View) Same(o View) bool {
	return v.Subject == o.Subject && v.Description == o.Description && v.ActiveForm == o.ActiveForm && v.Owner == o.Owner &&
		v.Status == o.Status && slices.Equal(v.BlockedBy, o.BlockedBy)
}

// Statuses there.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
)

// File is a task file.
type File struct {
	ID     string
	View   View
	Blocks []string // as it was read; Set leaves it alone
	Meta   map[string]json.RawMessage

	obj team.JSONObject
}

// Parse reads the text of a file with the id in its name. SaysID is the id in the text.
func Parse(id string, data []byte) (f File, saysID string, err error) {
	if f.obj, err = team.ParseJSONObject(data); err != nil {
		return f, "", err
	}
	f.ID = id
	field := func(key string, v any) {
		if i := f.obj.Index(key); i >= 0 && err == nil && string(f.obj[i].Value) != "null" {
			err = json.Unmarshal(f.obj[i].Value, v)
		}
	}
	if i := f.obj.Index("id"); i >= 0 && json.Unmarshal(f.obj[i].Value, &saysID) != nil {
		saysID = string(f.obj[i].Value) // not ours to judge here
	}
	field("subject", &f.View.Subject)
	field("description", &f.View.Description)
	field("activeForm", &f.View.ActiveForm)
	field("owner", &f.View.Owner)
	field("status", &f.View.Status)
	field("blocks", &f.Blocks)
	field("blockedBy", &f.View.BlockedBy)
	field("metadata", &f.Meta)
	return f, saysID, err
}

// Set puts a view and Meta into the file, and leaves every other key as it is. An empty list of
// blocks is written where there is none.
func (f *File) Set(v View) error {
	f.View = v
	err := errors.Join(
		f.put("id", f.ID, true),
		f.put("subject", v.Subject, true),
		f.put("description", v.Description, true),
		f.put("activeForm", v.ActiveForm, v.ActiveForm != ""),
		f.put("owner", v.Owner, v.Owner != ""),
		f.put("status", v.Status, true),
	)
	if f.obj.Index("blocks") < 0 { // in its place in the order of the keys
		f.obj.Set("blocks", json.RawMessage("[]"))
	}
	return errors.Join(err,
		f.put("blockedBy", append([]string{}, v.BlockedBy...), true),
		f.put("metadata", f.Meta, len(f.Meta) > 0),
	)
}

// SetBlocks puts the ids of the tasks that wait for this one.
func (f *File) SetBlocks(ids []string) error {
	f.Blocks = ids
	return f.put("blocks", append([]string{}, ids...), true)
}

func (f *File) put(key string, value any, keep bool) error {
	if !keep {
		if i := f.obj.Index(key); i >= 0 {
			f.obj = slices.Delete(f.obj, i, i+1)
		}
		return nil
	}
	raw, err := Marshal(value)
	if err == nil {
		f.obj.Set(key, raw)
	}
	return err
}

// Text is the file as it is written.
func (f File) Text() ([]byte, error) {
	var out bytes.Buffer
	err := json.Indent(&out, f.obj.AppendJSON(nil), "", "  ")
	return out.Bytes(), err
}

// Marshal encodes a value without escaping what HTML would need.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// IDOf is the id of the task in a file of that name; ok is false for other files.
func IDOf(e fs.DirEntry) (id string, ok bool) {
	id, ok = strings.CutSuffix(e.Name(), ".json")
	return id, ok && ledger.TaskIDPattern().MatchString(id) && !e.IsDir()
}

// Compare orders ids as numbers.
func Compare(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// HighWater is the highest id that was ever given out in a directory; 0 where that is not noted.
// ok is false where the note cannot be read as a number.
func HighWater(dir string) (n int64, ok bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, highWater))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return max(n, 0), err == nil && n >= 0, nil
}

// SetHighWater notes it.
func SetHighWater(dir string, n int64, sync bool) error {
	return atomicfile.Write(filepath.Join(dir, highWater), []byte(strconv.FormatInt(n, 10)), 0o600, sync)
}

const highWater = ".highwatermark"

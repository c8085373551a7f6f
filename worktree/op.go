package worktree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// op is the intent of a create or a remove, on disk from before its first
// change until after its last. The operation is running while its flock is
// held, by the process that began it or by a git that this process started.
type op struct {
	Kind       string    `json:"kind"` // create | remove
	Path       string    `json:"path"`
	PathStood  bool      `json:"pathStood,omitempty"`  // create: the path was an empty directory
	Branch     string    `json:"branch,omitempty"`     // create
	NewBranch  bool      `json:"newBranch,omitempty"`  // create: the branch did not exist
	Base       string    `json:"base,omitempty"`       // create
	Admin      string    `json:"admin,omitempty"`      // remove: the admin directory
	Aside      string    `json:"aside,omitempty"`      // remove: where the directory is moved
	DropBranch string    `json:"dropBranch,omitempty"` // remove
	Scratch    bool      `json:"scratch,omitempty"`    // create: for a lane, so it contains no work
	Began      time.Time `json:"began"`

	env     []string // create: added to git's environment
	parents []string // create: directories made above Path, innermost first
	doomed  bool     // remove: everything worth keeping is in a ref
	file    *os.File // open and locked
}

const (
	opCreate = "create"
	opRemove = "remove"
)

// doomedMark is appended to the op file as a line of its own.
const doomedMark = "doomed\n"

// begin writes and locks an op file. The caller holds the repository's lock, so
// no other process sees the file before it is locked.
func (r *Repo) begin(o *op) error {
	o.Began = time.Now()
	f, err := os.CreateTemp(r.own("ops"), o.Kind+"-*.op")
	if err != nil {
		return err
	}
	o.file = f
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		var data []byte
		if data, err = json.Marshal(o); err == nil {
			_, err = f.Write(append(data, '\n'))
		}
	}
	if err != nil {
		o.end()
		return fmt.Errorf("record the %s of %s: %w", o.Kind, o.Path, err)
	}
	return nil
}

// doom marks a removal as to be completed.
func (o *op) doom() error {
	if _, err := o.file.WriteString(doomedMark); err != nil {
		return fmt.Errorf("record the %s of %s: %w", o.Kind, o.Path, err)
	}
	o.doomed = true
	return nil
}

// end removes the op file: the operation is complete or undone.
func (o *op) end() {
	_ = os.Remove(o.file.Name())
	o.leave()
}

// leave releases the op for the next repair and keeps its file.
func (o *op) leave() {
	// Unlock explicitly: a child between fork and exec has a copy of the
	// descriptor.
	_ = syscall.Flock(int(o.file.Fd()), syscall.LOCK_UN)
	_ = o.file.Close()
}

// orphans opens and locks every op whose processes are dead. The caller holds
// the repository's lock. A file that cannot be parsed was truncated before any
// change, and is removed.
func (r *Repo) orphans() ([]*op, error) {
	entries, err := os.ReadDir(r.own("ops"))
	if err != nil {
		return nil, err
	}
	var list []*op
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".op" {
			continue
		}
		name := filepath.Join(r.own("ops"), e.Name())
		f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return list, err
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = f.Close() // running
			continue
		}
		o := &op{file: f}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) { // its owner has just ended it
			o.leave()
			continue
		}
		if err != nil {
			o.leave()
			return list, err
		}
		head, tail, complete := bytes.Cut(data, []byte("\n"))
		if !complete || json.Unmarshal(head, o) != nil || o.Path == "" {
			o.end()
			continue
		}
		o.doomed = string(tail) == doomedMark
		list = append(list, o)
	}
	return list, nil
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Book records the running commands of a team, one file each, so that what they
// leave is found if the process that runs them is killed. The zero value
// records nothing.
type Book struct {
	Dir  string // directory of the records; created when needed
	Team string // key, for the names of control groups
}

// BookOf returns the book of a team.
func BookOf(l team.Layout) Book { return Book{Dir: l.Commands(), Team: l.Key} }

// entry is the record of one scope.
type entry struct {
	Generation string          `json:"generation"`
	Kind       string          `json:"kind"`
	Dir        string          `json:"dir,omitempty"`
	Owner      backends.ProcID `json:"owner"`           // the process that runs the commands and ends the scope
	Group      string          `json:"group,omitempty"` // path of the control group
	Began      time.Time       `json:"began"`
}

// Scope is a generation for commands that run one after the other.
type Scope struct {
	Generation string
	group      *cgroup.Group
	file       string // of the record; empty if there is none
	left       bool   // a command could not be ended with all of its processes
}

// groupMark distinguishes the groups of commands from those of members: no
// member's name starts with it.
const groupMark = "_"

// Open opens a scope: it creates a control group, if possible, and writes its
// record before any command runs. The kind and the directory are for people.
func (b Book) Open(kind, dir string) (*Scope, error) {
	s := &Scope{Generation: team.NewUUID()}
	if b.Dir == "" {
		return s, nil
	}
	// A process of an agent stays in the agent's group with its commands:
	// outside the group they would escape the agent's limits and its end.
	if b.Team != "" && !cgroup.Contained() {
		if g, err := cgroup.Create(cgroup.Name(b.Team, groupMark+kind, s.Generation)); err == nil { // otherwise it runs without
			s.group = g
		}
	}
	if err := b.write(s, kind, dir); err != nil {
		s.dropGroup()
		return nil, fmt.Errorf("record a command: %w", err)
	}
	return s, nil
}

func (b Book) write(s *Scope, kind, dir string) error {
	self, err := proc.Self()
	if err != nil {
		return err
	}
	e := entry{Generation: s.Generation, Kind: kind, Dir: dir, Owner: self, Began: time.Now()}
	if s.group != nil {
		e.Group = s.group.Path()
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	// Do not create parent directories: a team that is being deleted must not
	// be recreated.
	if err := os.Mkdir(b.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	s.file = b.file(s.Generation)
	return atomicfile.Write(s.file, append(data, '\n'), 0o600, false)
}

const recordExt = ".json"

func (b Book) file(generation string) string { return filepath.Join(b.Dir, generation+recordExt) }

// Run runs a command in the scope: it calls this package's Run with the scope's
// generation and group. Commands of one scope run one after the other.
func (s *Scope) Run(ctx context.Context, c Cmd) (Ended, error) {
	c.Generation = s.Generation
	if s.group != nil {
		c.Group = s.group
	}
	end, err := Run(ctx, c)
	s.left = s.left || err != nil
	return end, err
}

// Close removes the record. If a process of the scope cannot be ended the
// record stays, for a Sweep after this process has exited.
func (s *Scope) Close() error {
	if s.left {
		var g proc.Group
		if s.group != nil {
			g = s.group
		}
		if err := End(g, s.Generation, 0); err != nil {
			return err
		}
	}
	s.dropGroup()
	if s.file == "" {
		return nil
	}
	return unlessGone(os.Remove(s.file))
}

func (s *Scope) dropGroup() {
	if s.group != nil {
		_ = s.group.Remove() // a detached process in it stays; the team's next group sweeps it
	}
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Left is a scope whose process was killed, and what Sweep found of it.
type Left struct {
	Generation string
	Kind       string
	Dir        string
	Processes  int // number of processes ended
}

// Left lists the scopes whose process has exited; it changes nothing.
func (b Book) Left() ([]Left, error) {
	entries, err := b.dead()
	var out []Left
	for _, e := range entries {
		out = append(out, Left{Generation: e.Generation, Kind: e.Kind, Dir: e.Dir})
	}
	return out, err
}

// Sweep ends what is left of scopes whose process has exited, and removes their
// records. It does not touch scopes of living processes.
func (b Book) Sweep(ctx context.Context) (done []Left, err error) {
	entries, err := b.dead()
	errs := []error{err}
	for _, e := range entries {
		n, err := endLeft(ctx, e)
		if err == nil {
			err = unlessGone(os.Remove(b.file(e.Generation)))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("end the processes that a %s left in %s: %w", e.Kind, e.Dir, err))
			continue
		}
		done = append(done, Left{Generation: e.Generation, Kind: e.Kind, Dir: e.Dir, Processes: n})
	}
	return done, errors.Join(errs...)
}

// leftGrace is the time between SIGTERM and SIGKILL for left processes.
const leftGrace = 2 * time.Second

func endLeft(ctx context.Context, e entry) (ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, killWithin)
	defer cancel()
	var group proc.Group
	g, err := cgroup.Open(e.Group)
	if e.Group != "" && err == nil {
		group = g
	}
	ended, err = proc.KillTreeIn(ctx, group, nil, e.Generation, leftGrace)
	if err == nil && group != nil {
		_ = g.Remove()
	}
	return ended, err
}

// Owned reports whether a living process has a scope open. If that cannot be
// read, it returns true.
func (b Book) Owned(generation string) bool {
	if !b.Has(generation) {
		return false
	}
	e, err := b.read(generation)
	return err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && proc.Alive(e.Owner)
}

// Kinds of scope.
const (
	Gate   = "gate"
	Setup  = "setup"
	Hook   = "hook"
	Notice = "notice"
	Task   = "task"   // of a worker
	Verify = "verify" // of a worker
	Tool   = "tool"   // of an agent with a model
)

// OfPerson reports whether a generation is that of a running command which the person has
// written: a gate, a set-up command, a hook, a notice.
func (b Book) OfPerson(generation string) bool {
	if generation == "" || filepath.Base(generation) != generation { // whoever is asked about may have made it up
		return false
	}
	e, err := b.read(generation)
	return err == nil && slices.Contains([]string{Gate, Setup, Hook, Notice}, e.Kind)
}

// GroupOfAgent reports whether the name of a control group is that of a built-in agent's command.
func GroupOfAgent(name string) bool {
	return slices.ContainsFunc([]string{Task, Verify, Tool}, func(kind string) bool { return strings.HasPrefix(name, groupMark+kind+"-") })
}

// Has reports whether a scope is recorded: a living process has it open, or
// what it left has not been ended. If that cannot be read, it returns true.
func (b Book) Has(generation string) bool {
	if b.Dir == "" {
		return false
	}
	_, err := os.Lstat(b.file(generation))
	return !errors.Is(err, fs.ErrNotExist)
}

func (b Book) read(generation string) (e entry, err error) {
	data, err := regular.ReadFile(b.file(generation))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(data, &e); err != nil || e.Generation != generation {
		return e, fmt.Errorf("%s is not the record of a command", b.file(generation))
	}
	return e, nil
}

// dead returns the records whose process has exited.
func (b Book) dead() (out []entry, err error) {
	if b.Dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(b.Dir)
	if err != nil {
		return nil, unlessGone(err)
	}
	var errs []error
	for _, f := range files {
		generation, ok := strings.CutSuffix(f.Name(), recordExt)
		if !ok {
			continue
		}
		e, err := b.read(generation)
		switch {
		case errors.Is(err, fs.ErrNotExist): // ended meanwhile
		case err != nil:
			errs = append(errs, err)
		case !proc.Alive(e.Owner):
			out = append(out, e)
		}
	}
	return out, errors.Join(errs...)
}

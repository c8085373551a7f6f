package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/team"
)

// trySubject is the name of a sandbox's member.
const trySubject = "subject"

// sandbox is a team that exists only for a test and is used through the program itself, like a
// person would. All of it is in one directory below the home directory, not in a temporary one,
// since agents ignore settings in directories where others may write. The directory is locked
// during the test, so that the next test recognises what a killed one has left.
type sandbox struct {
	dir  string
	work string
	exe  string
	env  []string
	lock *filelock.Held
	made string // the home directory, if it was created for this
	pid  int    // of the member
}

const (
	sandboxPrefix = "test-"
	sandboxTeam   = "sandbox"
	// sandboxYoung is the minimum age of a directory that may belong to a killed test: a new one is
	// not locked yet.
	sandboxYoung = time.Minute
)

// newSandbox creates a team whose member works in the given directory, an empty one if work is "".
func newSandbox(ctx context.Context, work string) (_ *sandbox, err error) {
	work, err = absolute(work)
	if err != nil {
		return nil, err
	}
	if info, serr := os.Stat(work); work != "" && (serr != nil || !info.IsDir()) {
		return nil, team.Errorf(team.CodeNotFound, "%s is not a directory", work).WithHint("--dir is where the agent works")
	}
	home, err := findHome()
	if err != nil {
		return nil, err
	}
	s := &sandbox{work: work}
	if s.exe, err = executable(); err != nil {
		return nil, err
	}
	if err := sweepSandboxes(ctx, home, s.exe); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove())
		}
	}()
	if err := s.make(home); err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "create a directory for the test: %w", err)
	}
	return s, s.run(ctx, nil, "create", sandboxTeam)
}

// make creates the directory, with the person's own agent kinds and screen patterns.
func (s *sandbox) make(home team.Home) (err error) {
	if _, serr := os.Stat(home.Dir); errors.Is(serr, fs.ErrNotExist) {
		s.made = home.Dir
	}
	if err := os.MkdirAll(home.Dir, 0o700); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp(home.Dir, sandboxPrefix); err != nil {
		return err
	}
	ok := false
	if s.lock, ok, err = filelock.TryLock(sandboxLock(s.dir)); err != nil || !ok {
		return errors.Join(err, errors.New("it is locked"))
	}
	s.env = sandboxEnv(s.dir)
	own := sandboxHome(s.dir)
	if s.work == "" {
		s.work = filepath.Join(s.dir, "work")
		err = os.Mkdir(s.work, 0o700)
	}
	if err == nil {
		err = os.Mkdir(own.Dir, 0o700)
	}
	for _, name := range []string{"agents", "rules"} {
		if _, serr := os.Stat(filepath.Join(home.Dir, name)); err == nil && serr == nil {
			err = os.Symlink(filepath.Join(home.Dir, name), filepath.Join(own.Dir, name))
		}
	}
	return err
}

func sandboxLock(dir string) string { return filepath.Join(dir, "lock") }

func sandboxHome(dir string) team.Home { return team.Home{Dir: filepath.Join(dir, "home")} }

// sandboxEnv is this process's environment without what would connect the sandbox to a team or to
// the person's tmux.
func sandboxEnv(dir string) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		ours := strings.HasPrefix(name, "TEAMCTL_") && name != team.EnvRuntime && !strings.HasPrefix(name, "TEAMCTL_PROGRAM_")
		if !ours && name != "TMUX" && name != "TMUX_PANE" {
			env = append(env, kv)
		}
	}
	return append(env, team.EnvHome+"="+sandboxHome(dir).Dir)
}

// sweepSandboxes ends and removes what killed tests left behind.
func sweepSandboxes(ctx context.Context, home team.Home, exe string) error {
	dirs, err := filepath.Glob(filepath.Join(glob.Escape(home.Dir), sandboxPrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for killed tests: %w", err)
	}
	for _, d := range dirs {
		info, err := os.Stat(d)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < sandboxYoung {
			continue
		}
		l, ok, err := filelock.TryLock(sandboxLock(d))
		if err != nil || !ok {
			continue // it is still running
		}
		s := &sandbox{dir: d, work: d, exe: exe, env: sandboxEnv(d), lock: l}
		if err := s.close(ctx); err != nil {
			return fmt.Errorf("end a test that was killed: %w", err)
		}
	}
	return nil
}

// sandboxWithin is the maximum time for one command in a sandbox: a slow program takes a minute to
// start.
const sandboxWithin = 3 * time.Minute

// run runs a command of this program in the sandbox and decodes its result into out.
func (s *sandbox) run(ctx context.Context, out any, args ...string) error {
	data, err := s.output(ctx, args...)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("read the result of %s: %w", args[0], err)
	}
	return nil
}

func (s *sandbox) output(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, sandboxWithin)
	defer cancel()
	args = append([]string{args[0], "--json"}, args[1:]...)
	cmd := exec.CommandContext(ctx, s.exe, args...) // this program
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.work, s.env, time.Second
	// A person's Ctrl-C is for this process, which cleans up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	var said struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(stdout.Bytes(), &said) == nil && said.Error.Message != "" {
		return nil, errors.New(said.Error.Message)
	}
	return nil, fmt.Errorf("teamctl %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()+stdout.String()))
}

// sandboxMember is the member as ps shows it.
type sandboxMember struct {
	Name     string        `json:"name"`
	Observed team.Observed `json:"observed"`
	PID      int           `json:"pid"`
	PaneID   string        `json:"paneId"`
	Exit     string        `json:"exitText"`
}

// place returns where it runs, as a value of --backend.
func (m sandboxMember) place() string {
	if strings.HasPrefix(m.PaneID, "%") {
		return "tmux"
	}
	return "pty"
}

// sandboxState is the member as explain shows it.
type sandboxState struct {
	Activity team.Activity `json:"activity"`
	For      team.WaitFor  `json:"for"`
	Ready    bool          `json:"ready"`
	Source   string        `json:"source"`
	Evidence []string      `json:"evidence"`
	Tier     string        `json:"tier"`
	At       time.Time     `json:"at"`

	Recent []team.Observation `json:"recent"`
}

// worked reports whether the member was seen working, if only for a moment.
func (r sandboxState) worked() bool {
	return slices.ContainsFunc(r.Recent, func(o team.Observation) bool { return o.Activity == team.Working })
}

func (r sandboxState) shown() string {
	out := string(r.Activity)
	if r.For != "" {
		out += " for " + string(r.For)
	}
	if r.Source != "" {
		out += ", says " + r.Source
	}
	return out
}

// rested reports whether the program itself has reported idle since a time. A screen may be late
// and show an earlier state.
func (r sandboxState) rested(since time.Time) bool {
	told := r.Tier == team.TierHook.String() || r.Tier == team.TierChannel.String()
	return told && r.Activity == team.Idle && r.At.After(since)
}

// restsOnScreen reports whether it is idle according to its screen, without any other source.
func (r sandboxState) restsOnScreen() bool {
	return r.Activity == team.Idle && !slices.ContainsFunc(r.Recent, func(o team.Observation) bool {
		return o.Activity != "" && o.Tier < team.TierTitle
	})
}

// ended reports whether it has exited; nothing restarts it.
func (m sandboxMember) ended() bool {
	switch m.Observed {
	case team.Exited, team.Backoff, team.Failed, team.Completed, team.Killed:
		return true
	case team.Pending, team.Starting, team.Running:
	}
	return false
}

// gone is the error for a member that has exited: waiting is pointless.
func (m sandboxMember) gone() error {
	if m.Exit == "" {
		return errors.New("it has exited")
	}
	return fmt.Errorf("it has exited: %s", m.Exit)
}

func (s *sandbox) member(ctx context.Context) (sandboxMember, error) {
	var all struct{ Members []sandboxMember }
	if err := s.run(ctx, &all, "ps"); err != nil {
		return sandboxMember{}, err
	}
	for _, m := range all.Members {
		if m.Name == trySubject {
			return m, nil
		}
	}
	return sandboxMember{}, errors.New("it is no longer a member")
}

func (s *sandbox) state(ctx context.Context) (r sandboxState, err error) {
	if s.lives() {
		return r, s.run(ctx, &r, "explain", trySubject)
	}
	m, err := s.member(ctx)
	if err == nil && m.ended() { // otherwise its exit is about to be seen
		err = m.gone()
	}
	return r, err
}

// worked reports whether the member was ever working.
func (s *sandbox) worked(ctx context.Context) (bool, error) {
	data, err := s.output(ctx, "events", "--what", team.EventMemberActivity)
	if err != nil {
		return false, err
	}
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var e struct{ ID, After string }
		switch err := dec.Decode(&e); {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read the events: %w", err)
		case e.ID == trySubject && e.After == string(team.Working):
			return true, nil
		}
	}
}

// shows returns the end of its screen, or of its output if it has exited.
func (s *sandbox) shows(ctx context.Context) []string {
	var screen struct{ Text string }
	if err := s.run(ctx, &screen, "capture", trySubject); err != nil || strings.TrimSpace(screen.Text) == "" {
		out, err := s.output(ctx, "logs", trySubject)
		if err != nil {
			return nil // the check has reported that it is missing
		}
		screen.Text = ""
		for dec := json.NewDecoder(bytes.NewReader(out)); ; screen.Text += "\n" {
			var l struct{ Line string }
			if dec.Decode(&l) != nil {
				break
			}
			screen.Text += l.Line
		}
	}
	var lines []string
	for l := range strings.Lines(plain.Text(screen.Text)) {
		if l = strings.TrimRight(l, " \n"); l != "" {
			lines = append(lines, l)
		}
	}
	return lines[max(0, len(lines)-12):]
}

func (s *sandbox) lives() bool { return s.pid > 0 && syscall.Kill(s.pid, 0) == nil }

// until polls until ok succeeds, returns an error, or the time is over.
func (s *sandbox) until(ctx context.Context, t trial, what string, ok func() (good bool, seen string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	last := ""
	for pause := 250 * time.Millisecond; ; pause = min(pause*5/4, time.Second) { // each look is a process
		good, seen, err := ok()
		switch {
		case good && err == nil:
			return nil
		case err != nil && ctx.Err() == nil:
			return err
		case seen != "":
			last = ": it is " + seen
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return fmt.Errorf("not %s within %s%s", what, t.timeout, last)
		}
	}
}

// close ends and removes the team. It reports what cannot be ended.
func (s *sandbox) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sandboxWithin)
	defer cancel()
	if _, err := os.Stat(sandboxHome(s.dir).Team(sandboxTeam).Dir); err == nil {
		if err := s.run(ctx, nil, "delete", sandboxTeam, "--force"); err != nil {
			err = team.Errorf(team.CodeUnavailable, "end the team of the test: %w", err).
				WithHint(team.EnvHome + "=" + team.ShellQuote(sandboxHome(s.dir).Dir) + " teamctl delete --force")
			return errors.Join(err, s.unlock())
		}
	}
	return s.remove()
}

func (s *sandbox) unlock() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Unlock()
}

func (s *sandbox) remove() error {
	var errs []error
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	errs = append(errs, s.unlock())
	if s.made != "" {
		_ = os.Remove(s.made) // it stays if it is in use by now
	}
	return errors.Join(errs...)
}

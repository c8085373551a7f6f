package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// faultRig is a team of the real program in an environment of its own. It is accessed through
// commands in separate processes only, so that these tests can run in parallel.
type faultRig struct {
	*testing.T
	dir    string
	exe    string
	env    []string
	layout team.Layout
}

// newFaultRig creates the team "f" on a repository with one commit. At the end of the test the
// team is deleted, and nothing of it may be left.
func newFaultRig(t *testing.T) *faultRig {
	t.Helper()
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	exe, err := exec.LookPath("teamctl")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(strays.Short(), "tc-f") // a socket path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	r := &faultRig{T: t, dir: dir, exe: exe, layout: team.Home{Dir: dir + "/t"}.Team("f")}
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(k, "TEAMCTL_"), strings.HasPrefix(k, "GIT_"), k == "TMUX", k == "TMUX_PANE", k == "HOME", k == "TMPDIR":
		default:
			r.env = append(r.env, kv)
		}
	}
	r.env = append(r.env, "HOME="+dir+"/home", "TMPDIR="+dir+"/tmp", team.EnvHome+"="+dir+"/t", team.EnvRuntime+"="+dir+"/r",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "NO_COLOR=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	for _, d := range []string{"home", "tmp", "repo"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(r.clean)
	r.repository("repo")
	r.teamctl("create", "f", "--repo", "repo")
	return r
}

// firstCommit is a repository with one empty commit. git makes it once for all rigs, which copy it.
var firstCommit struct {
	sync.Once
	files fstest.MapFS
	err   error
}

// repository puts a repository with one commit into a directory.
func (r *faultRig) repository(dir string) {
	r.Helper()
	dir = filepath.Join(r.dir, dir)
	one := &firstCommit
	one.Do(func() {
		made := r.dir + "/made"
		for _, args := range [][]string{{"init", "-q", "-b", "main", made}, {"-C", made, "commit", "-q", "--allow-empty", "-m", "first"}} {
			if _, one.err = r.try(append([]string{"git"}, args...)...); one.err != nil {
				return
			}
		}
		one.files = fstest.MapFS{}
		one.err = filepath.WalkDir(made, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == made || filepath.Ext(path) == ".sample" { // hooks that git does not run
				return err
			}
			f := &fstest.MapFile{Mode: d.Type() | 0o755}
			if !d.IsDir() {
				f.Mode = 0o644
				if f.Data, err = os.ReadFile(path); err != nil {
					return err
				}
			}
			one.files[strings.TrimPrefix(path, made+"/")] = f
			return nil
		})
		one.err = errors.Join(one.err, os.RemoveAll(made))
	})
	if err := errors.Join(one.err, os.CopyFS(dir, one.files)); err != nil {
		r.Fatal(err)
	}
}

// clean deletes the team and checks what is left.
func (r *faultRig) clean() {
	if _, err := r.try(r.exe, "delete", "--force", "--team", "f"); err != nil {
		r.Errorf("delete: %v", err)
	}
	if stale := staleRegistrations(r.dir); stale != "" {
		r.Error(stale)
	}
	log, err := os.ReadFile(r.layout.SupervisorLog())
	nothingLeft(r.T, r.dir)
	if r.Failed() && err == nil {
		r.Logf("supervisor.log:\n%s", log)
	}
}

// nothingLeft waits until no process of a world below dir is left, and removes dir. A process
// that stays fails the test and is ended.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	if err := errors.Join(strays.Gone(strays.Below(dir)), os.RemoveAll(dir)); err != nil {
		t.Error(err)
	}
}

func (r *faultRig) tick() {
	t := time.NewTimer(10 * time.Millisecond)
	defer t.Stop()
	<-t.C
}

// try runs a program in the rig's environment.
func (r *faultRig) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.WaitDelay = 5 * time.Second
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if err != nil {
		err = &runError{strings.Join(args, " "), stderr.String(), err}
	}
	return out.String(), err
}

// runError is a program that exited with a status other than 0.
type runError struct {
	what, stderr string
	err          error
}

func (e *runError) Error() string { return e.what + ": " + e.err.Error() + ": " + e.stderr }
func (e *runError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

func (r *faultRig) command(args ...string) string {
	r.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.Fatal(err)
	}
	return out
}

func (r *faultRig) teamctl(args ...string) string {
	r.Helper()
	return r.command(append([]string{r.exe}, args...)...)
}

// agent spawns a fake agent without a worktree.
func (r *faultRig) agent(name, restart string, argv ...string) {
	r.Helper()
	r.teamctl(append([]string{"spawn", name, "--worktree", "none", "--restart", restart, "--"}, argv...)...)
}

// members returns the roster without the lead, by name.
func (r *faultRig) members() map[string]ledger.Member {
	r.Helper()
	var out struct{ Members []ledger.Member }
	if err := json.Unmarshal([]byte(r.teamctl("ps", "--json")), &out); err != nil {
		r.Fatal(err)
	}
	byName := map[string]ledger.Member{}
	for _, m := range out.Members {
		if m.Name != team.LeadName {
			byName[m.Name] = m
		}
	}
	return byName
}

// until waits for a condition that causes no event outside the program.
func (r *faultRig) until(what string, ok func() bool) {
	r.Helper()
	began := time.Now()
	for {
		look := time.Now()
		if ok() {
			return
		}
		if time.Since(began) > patience {
			log, _ := os.ReadFile(r.layout.SupervisorLog()) // before ps starts another one
			r.Fatalf("waited %s for %s; the team:\n%s\nthe supervisors' log ends with:\n%s",
				patience, what, r.teamctl("ps", "-o", "wide"), log[max(0, len(log)-3000):])
		}
		rest(10*time.Millisecond, began, look)
	}
}

// state waits until a member is in a state and returns it.
func (r *faultRig) state(name string, want team.Observed) ledger.Member {
	r.Helper()
	var m ledger.Member
	r.until(name+" to be "+string(want), func() bool {
		m = r.members()[name]
		return m.Observed == want
	})
	return m
}

// proc returns the process of a member's newest generation.
func (r *faultRig) proc(name string) backends.Proc {
	r.Helper()
	p, err := bundle.ReadProc(r.layout.Bundle(name), "")
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// kill sends SIGKILL to a process of the rig and waits until it has exited.
func (r *faultRig) kill(id backends.ProcID) {
	r.Helper()
	if err := proc.Signal(id, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		r.Fatal(err)
	}
	// The identity is not checked again, since that is under test.
	r.until("a killed process to be reaped", func() bool {
		tasks, err := os.ReadDir("/proc/" + strconv.Itoa(id.PID) + "/task")
		return err != nil || len(tasks) <= 1 && !proc.Alive(id)
	})
}

func (r *faultRig) supervisor() backends.ProcID {
	r.Helper()
	// A supervisor holds the lock for a moment before the file contains its pid.
	var id backends.ProcID
	r.until("a supervisor that says who it is", func() bool {
		id = r.supervisorNow()
		return id != backends.ProcID{}
	})
	return id
}

// supervisorNow returns the supervisor recorded in the team's file, or zero.
func (r *faultRig) supervisorNow() backends.ProcID {
	b, err := os.ReadFile(r.layout.SupervisorPID())
	if err != nil {
		return backends.ProcID{}
	}
	pid, _, err := team.ParseSupervisorPID(b)
	if err != nil {
		return backends.ProcID{}
	}
	id, err := proc.Identify(pid)
	if err != nil {
		return backends.ProcID{}
	}
	return id
}

// server returns the tmux server of a member's pane.
func (r *faultRig) server(name string) (backends.ProcID, team.Pane) {
	r.Helper()
	p, err := bundle.ReadPane(r.layout.Bundle(name), "")
	if err != nil {
		r.Fatal(err)
	}
	return backends.ProcID{BootID: r.proc(name).Shim.BootID, PID: p.ServerPID, StartTicks: p.ServerStart}, p
}

// mail counts the entries of a mailbox file by message id.
func (r *faultRig) mail(name string) map[string]int {
	r.Helper()
	n := map[string]int{}
	data, err := os.ReadFile(filepath.Join(r.layout.Inboxes(), name+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return n
	}
	var entries []struct {
		ID string `json:"msg_id"`
	}
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		n[e.ID]++
	}
	return n
}

// send posts a message and returns its id.
func (r *faultRig) send(name, text string) string {
	r.Helper()
	var out struct {
		ID string `json:"message_id"`
	}
	if err := json.Unmarshal([]byte(r.teamctl("send", name, text, "--json")), &out); err != nil || out.ID == "" {
		r.Fatalf("send: %v, id %q", err, out.ID)
	}
	return out.ID
}

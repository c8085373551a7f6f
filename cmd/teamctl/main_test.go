package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/teamctl/teamctl/agent/program"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/internal/uniproc"
	"github.com/teamctl/teamctl/team"
)

// commands are the programs that tests run: this binary under other names.
var commands = map[string]func(){
	"teamctl":     func() { os.Exit(runIn(heldAt(interruptedAt(killedAt())), os.Args[1:])) },
	"fakeagent":   func() { os.Exit(fakeAgent(os.Args[1:])) },
	"lockholder":  func() { os.Exit(lockHolder(os.Args[1:])) },
	"foreignpeer": func() { os.Exit(foreignPeer(os.Args[1:])) },
	"squatter":    func() { os.Exit(squatter(os.Args[1:])) },
}

func TestMain(m *testing.M) { testscript.Main(placed{m}, commands) }

// placed runs the tests of this package with the sockets of their teams in one place.
type placed struct{ m *testing.M }

func (p placed) Run() int {
	uniproc.Release()
	if dir := os.Getenv(strays.EnvCommands); dir != "" {
		if err := install(filepath.Join(dir, "teamctl.test")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	done := strays.Place(team.EnvRuntime)
	status := done(p.m.Run())
	// testscript removes its directory with the last of all scripts, and leaves it in a run of some.
	if dir := scriptsDir.Load(); dir != nil {
		if err := os.Remove(*dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return status
}

// scriptsDir is the directory in which testscript makes the directories of the scripts; nil before the first.
var scriptsDir atomic.Pointer[string]

// install replaces every command that testscript has installed with a program, without the race
// detector. A command is
// identified by its own name, also if it starts itself, so each one has a link of that name
// beside the program; testscript's directory may be on another file system.
func install(program string) error {
	named := program + ".commands"
	if err := os.MkdirAll(named, 0o755); err != nil {
		return err
	}
	for name := range commands {
		path, err := exec.LookPath(name)
		if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		link := filepath.Join(named, name)
		if err := os.Link(program, link); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := os.Symlink(link, path); err != nil {
			return err
		}
	}
	// The small program is used where it is beside teamctl, as in an installation.
	err := os.Link(filepath.Join(filepath.Dir(program), bundle.SmallName), filepath.Join(named, bundle.SmallName))
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

// fakeAgent is a foreign agent that prints its name and then does what its arguments say.
func fakeAgent(args []string) int {
	fmt.Printf("I am %s of %s in %s\n", os.Getenv(team.EnvAgentName), os.Getenv(team.EnvTeam), filepath.Base(mustWd()))
	switch {
	case len(args) == 2 && args[0] == "exit":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return 64
		}
		return n
	case len(args) == 1 && args[0] == "hold":
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, syscall.SIGTERM)
		fmt.Println("holding")
		<-ch
		return 0
	}
	return 64
}

func mustWd() string {
	d, err := os.Getwd()
	if err != nil {
		return err.Error()
	}
	return d
}

// patience limits every wait of the tests.
const patience = 5 * time.Minute

func TestScripts(t *testing.T) {
	t.Parallel()
	r := &refusals{by: map[string][]refusal{}}
	t.Cleanup(func() { r.check(t) })
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: false,
		RequireUniqueNames:  true,
		Setup:               setup,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "tmux":
				_, err := exec.LookPath("tmux")
				return err == nil, nil
			case "freezer":
				return cgroup.Probe().Freeze, nil
			case "landlock":
				return program.CheckConfine() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode":  cmdExitcode,
			"until":     cmdUntil,
			"pids":      cmdPids,
			"killsup":   cmdKillSup,
			"killtmux":  cmdKillTmux,
			"nothing":   cmdNothing,
			"inside":    cmdInside,
			"interrupt": cmdInterrupt,
			"golden":    cmdGolden,
			"mistakes":  cmdMistakes,
			"page":      cmdPage,
			"refused":   r.refused,
		},
	})
}

// setup gives every script an environment of its own. Sockets need a short path, unlike that of
// $WORK.
func setup(env *testscript.Env) error {
	scripts := filepath.Dir(env.WorkDir)
	scriptsDir.Store(&scripts)
	dir, err := os.MkdirTemp(strays.Short(), "tc")
	if err != nil {
		return err
	}
	bin, err := exec.LookPath("teamctl")
	if err != nil {
		return err
	}
	notmux := filepath.Join(dir, "bin")
	if err := os.Mkdir(notmux, 0o700); err != nil {
		return err
	}
	if err := os.Symlink(bin, filepath.Join(notmux, "teamctl")); err != nil {
		return err
	}
	for _, p := range []string{"git", "bash", "sh"} {
		path, err := exec.LookPath(p)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(notmux, p)); err != nil {
			return err
		}
	}
	for _, d := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	exe, err := filepath.EvalSymlinks(bin)
	if err != nil {
		return err
	}
	for k, v := range map[string]string{
		"EXE":  exe, // as the program sees itself
		"HOME": dir + "/home", "TMPDIR": dir + "/tmp", "SHORT": dir, "NOTMUX": notmux,
		team.EnvHome: dir + "/t", team.EnvRuntime: dir + "/r", envIdle: "20s",
		"GORACE":   "atexit_sleep_ms=0", // otherwise every process of a -race build sleeps for a second before it exits
		"NO_COLOR": "1", "TERM": "xterm-256color", "LANG": "C.UTF-8", "SHELL": "/bin/sh",
		"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
	} {
		env.Setenv(k, v)
	}
	env.Defer(func() {
		stale := staleRegistrations(env.WorkDir)
		err := errors.Join(endAll(dir), os.RemoveAll(dir))
		if stale != "" || err != nil {
			env.T().Fatal(stale, err)
		}
	})
	return nil
}

// endAll ends all processes of a world below dir.
func endAll(dir string) error { return strays.End(strays.Below(dir)) }

// staleRegistrations returns what git would prune in the repositories below dir: registered
// worktrees that do not exist.
func staleRegistrations(dir string) string {
	var found []string
	repos, err := filepath.Glob(filepath.Join(dir, "*", ".git"))
	if err != nil {
		return err.Error()
	}
	for _, r := range repos {
		if _, err := os.Stat(filepath.Join(r, "worktrees")); errors.Is(err, os.ErrNotExist) {
			continue // none is registered
		}
		out, err := exec.Command("git", "-C", filepath.Dir(r), "worktree", "prune", "-n", "-v").CombinedOutput()
		if err == nil && len(out) > 0 { // a repository that git refuses belongs to a script
			found = append(found, fmt.Sprintf("git worktree prune -n in %s: %s", filepath.Dir(r), out))
		}
	}
	return strings.Join(found, "\n")
}

// exitcode N CMD...: CMD exits with status N.
func cmdExitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// wait calls f until it returns true.
func wait(ts *testscript.TestScript, what string, f func() bool) {
	began := time.Now()
	for {
		look := time.Now()
		if f() {
			return
		}
		if time.Since(began) > patience {
			ts.Fatalf("waited %s for %s", patience, what)
		}
		rest(50*time.Millisecond, began, look)
	}
}

// rest waits between two checks: at least least, longer on a busy machine, and longer the longer
// the wait has taken. A check is often a process, which must not keep the awaited one from running
// or take the processors from other tests.
func rest(least time.Duration, began, look time.Time) {
	t := time.NewTimer(max(least, 8*time.Since(look), time.Since(began)/3))
	defer t.Stop()
	<-t.C
}

// interrupt SIGNAL N CMD...: the signal is sent after the first output of CMD, and CMD exits with
// status N.
func cmdInterrupt(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM}[args[0]]
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(ts.Exec("env", "-0"))
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = strings.Split(strings.TrimRight(ts.ReadFile("stdout"), "\x00"), "\x00")
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		ts.Logf("read the first output: %v", err)
	}
	ts.Check(cmd.Process.Signal(sig))
	// timeout(1) signals the process and its group: the second signal must not cut short what the
	// first one began. The process may have exited already.
	_ = cmd.Process.Signal(sig)
	_, err = io.Copy(io.Discard, out)
	ts.Check(err)
	_ = cmd.Wait() // ExitCode reports the result
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit status %d (%v), want %d", got, cmd.ProcessState, want)
	}
}

// until REGEXP CMD...: CMD is run until its output matches.
func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until regexp command...")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	wait(ts, args[0], func() bool {
		err := ts.Exec(args[1], args[2:]...)
		return err == nil && re.MatchString(ts.ReadFile("stdout")) != neg
	})
}

// pids FILE: writes the pids and restarts of the agents, for cmp.
func cmdPids(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("teamctl", "ps", "--json"))
	re := regexp.MustCompile(`"(name|pid|restarts)": [^,\n]+`)
	text := strings.Join(re.FindAllString(ts.ReadFile("stdout"), -1), "\n") + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// killsup TEAM [N]: N times, kills the team's supervisor with SIGKILL, waits until it has exited,
// and runs a command that starts it again.
func cmdKillSup(ts *testscript.TestScript, _ bool, args []string) {
	n := 1
	if len(args) > 1 {
		var err error
		n, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	for range n {
		killSup(ts, args)
		ts.Check(ts.Exec("teamctl", "ps", "--team", args[0], "--json"))
	}
}

func killSup(ts *testscript.TestScript, args []string) {
	path := filepath.Join(ts.Getenv(team.EnvHome), "teams", args[0], "supervisor.pid")
	b, err := os.ReadFile(path)
	ts.Check(err)
	pid, _, err := team.ParseSupervisorPID(b)
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	// The first thread becomes a zombie while the others are still exiting and hold the lock.
	wait(ts, "the death of the supervisor", func() bool {
		_, err := proc.Identify(pid)
		return err != nil
	})
}

// killtmux: kills the tmux server that the script's teams share, with SIGKILL.
func cmdKillTmux(ts *testscript.TestScript, _ bool, _ []string) {
	sockets, err := filepath.Glob(filepath.Join(ts.Getenv(team.EnvRuntime), "*", "t"))
	ts.Check(err)
	if len(sockets) != 1 {
		ts.Fatalf("tmux sockets: %v", sockets)
	}
	ts.Check(ts.Exec("tmux", "-S", sockets[0], "display-message", "-p", "#{pid}"))
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile("stdout")))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
}

// inside: from here on the script runs in a pane of a tmux server of its own, as far as programs
// can tell. The server's socket is $SHORT/p.
func cmdInside(ts *testscript.TestScript, _ bool, _ []string) {
	sock := filepath.Join(ts.Getenv("SHORT"), "p")
	ts.Check(ts.Exec("tmux", "-S", sock, "-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", "fakeagent hold"))
	ts.Check(ts.Exec("tmux", "-S", sock, "display-message", "-p", "#{socket_path},#{pid},0 #{pane_id}"))
	tm, pane, ok := strings.Cut(strings.TrimSpace(ts.ReadFile("stdout")), " ")
	if !ok {
		ts.Fatalf("no pane: %q", ts.ReadFile("stdout"))
	}
	ts.Setenv("TMUX", tm)
	ts.Setenv("TMUX_PANE", pane)
}

// nothing REPO...: no process of the script is running, its runtime and temporary directories are
// empty, and no worktree of the repositories is registered.
func cmdNothing(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.Getenv("SHORT")
	wait(ts, "the end of all processes", func() bool { return len(strays.Below(dir)()) == 0 })
	sockets, err := filepath.Glob(filepath.Join(ts.Getenv(team.EnvRuntime), "*", "*"))
	ts.Check(err)
	if len(sockets) > 0 {
		ts.Fatalf("left in the runtime directory: %v", sockets)
	}
	tmp, err := os.ReadDir(ts.Getenv("TMPDIR"))
	ts.Check(err)
	if len(tmp) > 0 {
		ts.Fatalf("left in TMPDIR: %v", tmp)
	}
	for _, repo := range args {
		ts.Check(ts.Exec("git", "-C", repo, "worktree", "list", "--porcelain"))
		if n := strings.Count(ts.ReadFile("stdout"), "worktree "); n != 1 {
			ts.Fatalf("%d worktrees of %s, want 1", n, repo)
		}
	}
}

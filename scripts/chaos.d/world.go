package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// teamName is the team under torture.
const teamName = "chaos"

// world is the team, its directories, and the faults done to it.
type world struct {
	opt  options
	rand *rand.Rand // of the goroutine that runs the rounds
	dir  string     // everything is below it
	vol  string     // the file system of home and repository
	repo string
	disk *disk // nil: the disk cannot be filled here
	self string
	env  *tool.Env
	team *tool.Team

	members []*agentPlan
	given   given
	traffic *traffic
	base    baseline

	round    int
	done     []string       // what was done, in order
	counts   map[string]int // by fault
	skipped  map[string]string
	excused  bool            // tasks may have failed since the last settling
	hurt     map[string]bool // mailboxes damaged or deleted since then
	killed   map[string]string
	paused   map[string]bool
	seen     seen
	temps    map[string]bool // members spawned by a fault
	slowest  time.Duration
	slowName string

	behind sync.WaitGroup // runs while faults happen
	mu     sync.Mutex     // guards done and late
	late   []error        // of the functions in behind
}

// newWorld creates the directory, the repository, the team and its members.
func newWorld(ctx context.Context, opt options) (w *world, err error) {
	dir, err := os.MkdirTemp("/tmp", "tc-chaos.") // short: a socket path has 107 bytes
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w = &world{
		opt: opt, rand: rand.New(rand.NewPCG(opt.seed, 1)), dir: dir, vol: filepath.Join(dir, "v"), self: self,
		counts: map[string]int{}, skipped: map[string]string{}, hurt: map[string]bool{}, killed: map[string]string{}, paused: map[string]bool{}, temps: map[string]bool{},
	}
	w.repo = filepath.Join(w.vol, "repo")
	defer func() {
		if err != nil {
			err = errors.Join(err, w.remove())
		}
	}()
	if w.disk, err = newDisk(w.vol, w.opt.rounds); err != nil {
		w.skipped["fill-disk"] = err.Error()
		fmt.Printf("chaos: no file system of its own (%v): the disk is not filled\n", err)
	}
	for _, d := range []string{w.vol, filepath.Join(dir, "tmp"), filepath.Join(dir, "home")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	w.setenv()
	if err := w.startModel(); err != nil {
		return nil, err
	}
	if err := w.makeRepo(ctx); err != nil {
		return nil, err
	}
	home, err := team.FindHome()
	if err != nil {
		return nil, err
	}
	w.env = newEnv(home, opt.teamctl)
	if _, err := w.env.TeamCreate(ctx, tool.Person(), tool.TeamCreateIn{TeamName: teamName, Repo: w.repo}); err != nil {
		return nil, err
	}
	if w.team, err = w.env.Open(ctx, teamName); err != nil {
		return nil, err
	}
	return w, w.populate(ctx)
}

// newEnv returns the environment of this program's verbs, like that of teamctl.
func newEnv(home team.Home, exe string) *tool.Env {
	return &tool.Env{Home: home, Dial: control.Dialer([]string{exe}), Writer: control.Writer}
}

// setenv gives this process and all that it starts a world of their own.
func (w *world) setenv() {
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(k, "TEAMCTL_") || strings.HasPrefix(k, "GIT_") || k == "TMUX" || k == "TMUX_PANE" {
			_ = os.Unsetenv(k)
		}
	}
	for k, v := range map[string]string{
		team.EnvHome: filepath.Join(w.vol, "t"), team.EnvRuntime: filepath.Join(w.dir, "r"),
		"HOME": filepath.Join(w.dir, "home"), "TMPDIR": filepath.Join(w.dir, "tmp"),
		"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "chaos", "GIT_AUTHOR_EMAIL": "chaos@example.com",
		"GIT_COMMITTER_NAME": "chaos", "GIT_COMMITTER_EMAIL": "chaos@example.com",
		"TEAMCTL_TEST_CLOCK": w.clockFile(),
		"TERM":               "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1",
	} {
		_ = os.Setenv(k, v)
	}
}

func (w *world) makeRepo(ctx context.Context) error {
	if err := os.MkdirAll(w.repo, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.repo, "README"), []byte("a repository\n"), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "gc.auto", "0"}, {"add", "."}, {"commit", "-q", "-m", "first"}} {
		if _, err := w.git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", w.repo}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// cli runs teamctl in a process of its own.
func (w *world) cli(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, w.opt.teamctl, args...)
	cmd.Dir = w.dir
	cmd.WaitDelay = 5 * time.Second // a supervisor that it started keeps none of our descriptors
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("teamctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// note records what is done, for the report.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprintf("%s round %d: ", time.Now().Format("15:04:05.000"), w.round) + fmt.Sprintf(format, args...)
	w.done = append(w.done, line)
	if w.opt.verbose {
		fmt.Println(line)
	}
}

// until waits for a condition that gives no event here.
func until(ctx context.Context, within time.Duration, ok func() bool) bool {
	return every(ctx, 10*time.Millisecond, within, ok)
}

// every is until for a condition that is dear to look at.
func every(ctx context.Context, look, within time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ok()
		}
	}
	return true
}

// pause lets a random part of d go by: the fault falls anywhere into what the
// others do.
func (w *world) pause(ctx context.Context, d time.Duration) {
	_ = pause.For(ctx, time.Duration(w.rand.Int64N(int64(d)+1)))
}

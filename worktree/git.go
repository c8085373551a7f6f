package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/team"
)

// stopGrace is how long a git process may take after SIGTERM to remove its lock
// files before it is killed.
const stopGrace = 5 * time.Second

// finishTime limits work that must finish once begun (rollback, abort) and so
// does not end with the caller's context.
const finishTime = 2 * time.Minute

// call is one run of git.
type call struct {
	dir   string   // working directory, passed as -C
	args  []string // subcommand and its arguments
	env   []string // added to the cleaned environment
	conf  []string // key=value, for this run only
	stdin []byte
	read  bool           // takes no optional locks
	keep  []*os.File     // inherited, so that their flock is held as long as git runs
	tell  func(Progress) // receives git's progress reports
}

// gitError is a git process that exited with a non-zero status.
type gitError struct {
	verb   string
	dir    string
	status int // -1: ended by a signal
	stderr string
}

func (e *gitError) Error() string {
	what := e.stderr
	if what == "" {
		what = "no message"
	}
	if e.status < 0 {
		return fmt.Sprintf("git %s in %s: ended by a signal: %s", e.verb, e.dir, what)
	}
	return fmt.Sprintf("git %s in %s: exit status %d: %s", e.verb, e.dir, e.status, what)
}

// exitStatus returns the exit status of git in err's chain, or -1.
func exitStatus(err error) int {
	var g *gitError
	if errors.As(err, &g) {
		return g.status
	}
	return -1
}

// hardening is configuration for every run. Hooks are the user's programs and
// may do anything; a file system monitor or a background gc would outlive git
// and keep the locks that it inherited; a reset that enters submodules would
// overwrite work there, of which a snapshot has nothing.
var hardening = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.splitIndex=false",
	"gc.auto=0",
	"maintenance.auto=false",
	"commit.gpgSign=false",
	"advice.detachedHead=false",
	"submodule.recurse=false",
}

// git runs git and returns its stdout. It is the only place that starts a git
// process. A failure is a *gitError, or a coded error if git is missing, the
// disk is full or ctx ended.
func git(ctx context.Context, c call) ([]byte, error) {
	verb := c.args[0]
	argv := []string{"-C", c.dir}
	for _, kv := range hardening {
		argv = append(argv, "-c", kv)
	}
	for _, kv := range c.conf {
		argv = append(argv, "-c", kv)
	}
	cmd := exec.CommandContext(ctx, "git", append(argv, c.args...)...)
	cmd.Env = append(gitEnv(os.Environ(), c.read), c.env...)
	// A process group of its own: the whole group gets the signal, and on
	// Ctrl-C in the user's terminal teamctl reacts, not git.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	cmd.ExtraFiles = c.keep
	var stdout bytes.Buffer
	stderr := &capped{max: 16 << 10}
	progress := &progressWriter{tell: c.tell, rest: stderr}
	var messages io.Writer = stderr
	if c.tell != nil {
		messages = progress
	}
	if c.stdin != nil {
		cmd.Stdin = bytes.NewReader(c.stdin)
	}
	err := runTo(cmd, &stdout, messages)
	progress.flush()
	if err == nil {
		return stdout.Bytes(), nil
	}
	if cause := ctx.Err(); cause != nil {
		return nil, ended(verb, c.dir, cause)
	}
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, team.Errorf(team.CodeUnavailable, "run git %s: %w", verb, err).
			WithReason(team.ReasonGitMissing).WithHint("install git 2.17 or newer")
	case errors.As(err, &exit):
		g := &gitError{verb: verb, dir: c.dir, status: exit.ExitCode(), stderr: strings.TrimSpace(stderr.String())}
		if diskFull(g.stderr) {
			return nil, team.Errorf(team.CodeUnavailable, "no space left on the disk: %w", g).
				WithReason(team.ReasonDiskFull).WithHint("free some space, then try again")
		}
		return stdout.Bytes(), g
	default:
		return nil, team.Errorf(team.CodeUnavailable, "run git %s in %s: %w", verb, c.dir, err).
			WithReason(team.ReasonGitFailed)
	}
}

// diskFull matches the text of the C library, which git passes on; git has no
// other way to report a full disk.
func diskFull(stderr string) bool {
	return strings.Contains(stderr, "No space left on device") || strings.Contains(stderr, "Disk quota exceeded")
}

func ended(verb, dir string, cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return team.Errorf(team.CodeTimeout, "git %s in %s took too long: %w", verb, dir, cause).
			WithReason(team.ReasonTimeout)
	}
	return team.Errorf(team.CodeUnavailable, "git %s in %s was cancelled: %w", verb, dir, cause).
		WithReason(team.ReasonCanceled)
}

// keptVars are the GIT_* variables of the caller's environment that git still
// sees: the location of its configuration and the access to remotes (the
// checkout of a partial clone fetches). All others may name a different
// repository, index, identity or output.
var keptVars = []string{
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER",
	"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_PROGRESS_DELAY",
}

var keptPrefixes = []string{"GIT_SSL_", "GIT_PROXY_", "GIT_LFS_", "GIT_HTTP_"}

func gitEnv(from []string, read bool) []string {
	env := make([]string, 0, len(from)+6)
	for _, kv := range from {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "GIT_") && !keptVar(name),
			strings.HasPrefix(name, "LC_"), name == "LANG", name == "LANGUAGE", name == "PWD":
			continue
		}
		env = append(env, kv)
	}
	env = append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_MERGE_AUTOEDIT=no")
	if read {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	return env
}

func keptVar(name string) bool {
	for _, v := range keptVars {
		if name == v {
			return true
		}
	}
	for _, p := range keptPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// capped keeps the first max bytes: enough for git's message, bounded for a
// filter that writes without end.
type capped struct {
	kept bytes.Buffer // not embedded: io.Copy would use its ReadFrom, which has no limit
	max  int
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.max - c.kept.Len(); room > 0 {
		_, _ = c.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (c *capped) String() string { return c.kept.String() }

var _ io.Writer = (*capped)(nil)

// oldestGit is the oldest supported version for basic operations.
var oldestGit = [2]int{2, 17}

// Check returns git's version, and an unavailable error if git is missing or
// older than 2.17.
func Check(ctx context.Context) (version string, err error) {
	out, err := git(ctx, call{dir: ".", args: []string{"version"}, read: true})
	if err != nil {
		return "", err
	}
	version = strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil {
		return version, team.Errorf(team.CodeUnavailable, "cannot parse git version %q", version).
			WithReason(team.ReasonGitFailed)
	}
	if a < oldestGit[0] || a == oldestGit[0] && b < oldestGit[1] {
		return version, team.Errorf(team.CodeUnavailable, "git %s is too old", version).
			WithReason(team.ReasonGitTooOld).WithHint("install git 2.17 or newer")
	}
	return version, nil
}

// lines splits output at newlines or NULs, without an empty last element.
func lines(out []byte, sep byte) []string {
	s := strings.TrimSuffix(string(out), string(sep))
	if s == "" {
		return nil
	}
	return strings.Split(s, string(sep))
}

func oneLine(out []byte) string { return strings.TrimRight(string(out), "\n") }

package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/childattr"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Command is a command of the person's, a gate or a setup step, that bash runs in
// a worktree.
type Command struct {
	Run   string
	Dir   string
	Env   []string      // added to the environment, KEY=VALUE
	Limit time.Duration // 0 for none
	Log   string        // file that its output is appended to
}

// Ran is how a command ended.
type Ran struct {
	Run     string        `json:"run"`
	Status  int           `json:"status"` // exit status; -1 when a signal ended it
	TimeOut bool          `json:"timeOut,omitempty"`
	Took    time.Duration `json:"took"`
	Tail    string        `json:"tail,omitempty"` // the last lines of its output
}

// OK reports that it ended by itself with status 0.
func (r Ran) OK() bool { return r.Status == 0 && !r.TimeOut }

// Why says how it failed.
func (r Ran) Why() string {
	switch {
	case r.TimeOut:
		return fmt.Sprintf("took longer than %s", r.Took.Round(time.Second))
	case r.Status < 0:
		return "was ended by a signal"
	}
	return fmt.Sprintf("exit status %d", r.Status)
}

// tailBytes is how much of a command's output is kept for a message.
const tailBytes = 8 << 10

// RunCommand runs a command to its end and appends its output to the log. It
// has no terminal and no input, and a process group of its own, which is ended
// with it. A command that fails is no error; one that cannot be started, a log that
// cannot be written and the end of ctx are.
func RunCommand(ctx context.Context, c Command) (Ran, error) {
	ran := Ran{Run: c.Run, Status: -1}
	out, err := openLog(c.Log)
	if err != nil {
		return ran, noSpace(err)
	}
	defer func() { _ = out.Close() }()
	began := time.Now()
	if _, err := fmt.Fprintf(out, "$ %s\n", c.Run); err != nil {
		return ran, noSpace(err)
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if c.Limit > 0 {
		limited, cancel = context.WithTimeout(ctx, c.Limit)
	}
	defer cancel()
	cmd := exec.CommandContext(limited, "bash", "-c", c.Run)
	cmd.Dir, cmd.Env = c.Dir, append(plainEnv(os.Environ()), c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	childattr.DieWithUs(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	tail := &ring{max: tailBytes}
	w := io.MultiWriter(out, tail)
	cmd.Stdout, cmd.Stderr = w, w
	// The signal of DieWithUs comes when this thread ends, not the process.
	runtime.LockOSThread()
	err = cmd.Run()
	runtime.UnlockOSThread()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left in the background
	}
	ran.Took, ran.Tail = time.Since(began), tail.text()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ran, ended(c.Run, c.Dir, ctx.Err())
	case limited.Err() != nil:
		ran.TimeOut = true
	case err == nil:
		ran.Status = 0
	case errors.As(err, &exit):
		ran.Status = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay):
		ran.Status = cmd.ProcessState.ExitCode()
	default:
		return ran, team.Errorf(team.CodeUnavailable, "run %q in %s: %w", c.Run, c.Dir, err).WithReason(ReasonCommand)
	}
	if _, err := fmt.Fprintf(out, "# exit status %d after %s\n", ran.Status, ran.Took.Round(time.Millisecond)); err != nil {
		return ran, noSpace(err)
	}
	return ran, nil
}

func openLog(path string) (*os.File, error) {
	if path == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return regular.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// plainEnv is the caller's environment without what names another repository.
func plainEnv(from []string) []string {
	env := make([]string, 0, len(from))
	for _, kv := range from {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "GIT_") && !keptVar(name) && !strings.HasPrefix(name, "GIT_AUTHOR_") && !strings.HasPrefix(name, "GIT_COMMITTER_") {
			continue
		}
		env = append(env, kv)
	}
	return env
}

// ring keeps the end of what is written to it.
type ring struct {
	buf bytes.Buffer
	max int
}

func (r *ring) Write(p []byte) (int, error) {
	r.buf.Write(p)
	if over := r.buf.Len() - 2*r.max; over > 0 {
		r.buf.Next(over)
	}
	return len(p), nil
}

// text is the last max bytes, whole lines where that is possible.
func (r *ring) text() string {
	s := r.buf.String()
	if over := len(s) - r.max; over > 0 {
		s = s[over:]
		if _, rest, ok := strings.Cut(s, "\n"); ok {
			s = rest
		}
	}
	return strings.ToValidUTF8(strings.TrimRight(s, "\n"), "?")
}

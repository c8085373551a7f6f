package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
)

// runner executes tmux commands on one server.
type runner interface {
	// run executes one command and returns its output, without the last
	// newline. An error reported by tmux itself is a *refused.
	run(ctx context.Context, args ...string) (string, error)
	// batch executes commands in order and stops at the first failure.
	batch(ctx context.Context, cmds ...[]string) error
	// groups executes several batches, one after the other; a failing batch
	// does not prevent the next ones. There is one answer for each: the output
	// of its commands, or its first failure.
	groups(ctx context.Context, groups ...[][]string) []answer
	// buffer sets the contents of a new paste buffer.
	buffer(ctx context.Context, name, data string) error
	close()
}

// refused is an error answer of tmux to a command.
type refused struct{ cmd, msg string }

func (e *refused) Error() string { return "tmux " + e.cmd + ": " + e.msg }

// execRunner starts a tmux process per request.
type execRunner struct {
	tmux, socket string
	conf         string // loaded only by the command that starts the server
}

func (r *execRunner) run(ctx context.Context, args ...string) (string, error) {
	return r.exec(ctx, nil, escapeAll(args))
}

func (r *execRunner) batch(ctx context.Context, cmds ...[]string) error {
	return r.group(ctx, cmds).err
}

func (r *execRunner) groups(ctx context.Context, groups ...[][]string) []answer {
	as := make([]answer, len(groups))
	for i, g := range groups {
		as[i] = r.group(ctx, g)
	}
	return as
}

func (r *execRunner) group(ctx context.Context, cmds [][]string) answer {
	var all []string
	for i, c := range cmds {
		if i > 0 {
			all = append(all, ";")
		}
		all = append(all, escapeAll(c)...)
	}
	out, err := r.exec(ctx, nil, all)
	return answer{out, err}
}

func (r *execRunner) buffer(ctx context.Context, name, data string) error {
	_, err := r.exec(ctx, []byte(data), []string{"load-buffer", "-b", name, "-"})
	return err
}

func (r *execRunner) close() {}

func (r *execRunner) exec(ctx context.Context, stdin []byte, args []string) (string, error) {
	conf := r.conf
	if conf == "" {
		conf = "/dev/null"
	}
	cmd := exec.CommandContext(ctx, r.tmux, append([]string{"-u", "-S", r.socket, "-f", conf}, args...)...)
	cmd.Env = serverEnv()
	var out, errb bytes.Buffer
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	if err := finish(ctx, cmd, &out, &errb); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("tmux %s: %w", args[0], context.Cause(ctx))
		}
		if msg := strings.TrimSpace(errb.String()); msg != "" {
			return "", &refused{args[0], msg}
		}
		return "", fmt.Errorf("tmux %s: %w", args[0], err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// finish runs a command and reads its whole output. The server that it talks to, or starts, has its
// pipes too and closes them when it gets to that, which on a busy machine takes longer than any delay
// of exec.Cmd: a command that has succeeded would count as failed. Only after the end of the context
// the rest of the output is given up.
func finish(ctx context.Context, cmd *exec.Cmd, out, errb *bytes.Buffer) error {
	var readers sync.WaitGroup
	var pipes []io.ReadCloser
	for _, pipe := range []func() (io.ReadCloser, error){cmd.StdoutPipe, cmd.StderrPipe} {
		p, err := pipe()
		if err != nil {
			return err
		}
		pipes = append(pipes, p)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for i, to := range []*bytes.Buffer{out, errb} {
		readers.Go(func() { _, _ = to.ReadFrom(pipes[i]) }) // a part of the output, after the context's end
	}
	all := make(chan struct{})
	go func() { readers.Wait(); close(all) }()
	select {
	case <-all:
	case <-ctx.Done(): // ends the command
		late := time.NewTimer(time.Second)
		defer late.Stop()
		select {
		case <-all:
		case <-late.C:
			defer func() { <-all }()
			return errors.Join(context.Cause(ctx), cmd.Wait()) // closes the pipes
		}
	}
	return cmd.Wait()
}

// escapeAll prevents a trailing ';' of an argument from ending the command.
func escapeAll(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if strings.HasSuffix(a, ";") {
			a = a[:len(a)-1] + `\;`
		}
		out[i] = a
	}
	return out
}

// serverEnv returns the part of the environment that is passed to a tmux server
// started by teamctl, and so to every pane of it. The server is marked as
// detached from its ancestors: it must outlive an agent whose command started
// the supervisor.
func serverEnv() []string {
	keep := []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
		"TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TEAMCTL_HOME", "TEAMCTL_RUNTIME_DIR", "COLORTERM"}
	env := []string{"TERM=screen-256color", proc.EnvDetached + "=1"}
	for _, k := range keep {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// quote formats one argument of a line in tmux's command language, which a
// control client reads: a newline would end the command, '$' would be expanded.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '$':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func line(args []string) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quote(a))
	}
	return b.String()
}

// literal prevents text from being interpreted as a format ("#{..}",
// "#(command)") and, where tmux also applies strftime, as a date.
func literal(s string, dates bool) string {
	s = strings.ReplaceAll(s, "#", "##")
	if dates {
		s = strings.ReplaceAll(s, "%", "%%")
	}
	return s
}

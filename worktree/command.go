package worktree

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/gitenv"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

// Command is a user's command (a gate or a setup step) that bash runs in a
// worktree and a scope.
type Command struct {
	Run   string
	Dir   string
	Env   []string      // added to the environment, KEY=VALUE
	Limit time.Duration // 0 means none
	Log   string        // file to which its output is appended
	Scope *run.Scope    // identifies its processes
}

// tailBytes is how much of a command's output is kept for messages.
const tailBytes = 8 << 10

// RunCommand runs a command to its end, including everything that it starts,
// and appends its output to the log. The command has no terminal and no input.
// A failing command is not an error; a command that cannot be started or ended,
// a log that cannot be written and the end of ctx are.
func RunCommand(ctx context.Context, c Command) (team.Ran, error) {
	ran := team.Ran{Run: c.Run, Status: -1}
	if ctx.Err() != nil {
		return ran, ended(c.Run, c.Dir, ctx.Err())
	}
	out, err := openLog(c.Log)
	if err != nil {
		return ran, noSpace(err)
	}
	defer func() { _ = out.Close() }()
	began := time.Now()
	if _, err := fmt.Fprintf(out, "$ %s\n", c.Run); err != nil {
		return ran, noSpace(err)
	}
	tail := &ring{max: tailBytes}
	w := io.MultiWriter(out, tail)
	end, err := c.Scope.Run(ctx, run.Cmd{
		Command: c.Run, Dir: c.Dir, Env: append(plainEnv(os.Environ()), c.Env...), Stdout: w, Stderr: w, Limit: c.Limit, Grace: stopGrace,
	})
	ran.Took, ran.Tail, ran.TimeOut = time.Since(began), tail.text(), end.Late
	if !end.Late && end.Signal == "" {
		ran.Status = end.Code
	}
	if err == nil {
		err = end.Err
	}
	switch {
	case end.Cut:
		return ran, ended(c.Run, c.Dir, ctx.Err())
	case err != nil:
		return ran, team.Errorf(team.CodeUnavailable, "run %q in %s: %w", c.Run, c.Dir, err).WithReason(team.ReasonCommandFailed)
	}
	if _, err := fmt.Fprintf(out, "# exit status %d after %s\n", ran.Status, ran.Took.Round(time.Millisecond)); err != nil {
		return ran, noSpace(err)
	}
	return ran, nil
}

// runAll calls each for every command in order, with one scope for all, and
// stops at the first error.
func runAll(book run.Book, kind, dir string, list []string, each func(*run.Scope, string) error) error {
	if len(list) == 0 {
		return nil
	}
	scope, err := book.Open(kind, dir)
	if err != nil {
		return noSpace(err)
	}
	for _, command := range list {
		if err = each(scope, command); err != nil {
			break
		}
	}
	if e := scope.Close(); err == nil && e != nil {
		err = team.Errorf(team.CodeUnavailable, "end the commands of %s: %w", dir, e).WithReason(team.ReasonCommandFailed)
	}
	return err
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

// plainEnv returns the environment without the variables that name another
// repository, or the author of the commit whose hook has called teamctl.
func plainEnv(from []string) []string {
	env := make([]string, 0, len(from))
	for _, kv := range gitenv.Without(from) {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "GIT_") && !keptVar(name) && !strings.HasPrefix(name, "GIT_AUTHOR_") && !strings.HasPrefix(name, "GIT_COMMITTER_") {
			continue
		}
		env = append(env, kv)
	}
	return env
}

// ring keeps the last bytes written to it.
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

// text returns the last max bytes, from the start of a line where possible.
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

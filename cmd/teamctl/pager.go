package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	runner "github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/internal/sgr"
	"github.com/teamctl/teamctl/team"
)

// pager is the program that a person pipes changes through.
type pager struct {
	argv   []string
	within time.Duration // how long it may take
	most   int           // limits its output, in bytes
}

func newPager(argv []string) pager { return pager{argv, pagerWithin, pagerMax} }

const (
	pagerWithin = 20 * time.Second
	// pagerGrace is the time between SIGTERM and SIGKILL.
	pagerGrace = 500 * time.Millisecond
	pagerMax   = 8 << 20
)

// page returns the lines that the program prints for a patch. It has no terminal, so that it
// neither waits for keys nor draws on the screen, and it is ended with ctx.
func (p pager) page(ctx context.Context, patch string, cols int) ([]string, error) {
	name := p.argv[0]
	if _, err := exec.LookPath(name); err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "%s cannot be run: %w", name, errors.Unwrap(err))
	}
	out, errs := &atMost{left: p.most}, &atMost{left: 1 << 12}
	ended, err := runner.Run(ctx, runner.Cmd{
		Command: `exec -- "$0" "$@"`, Args: p.argv, Env: pagerEnv(os.Environ(), cols), Generation: team.NewUUID(),
		Stdin: []byte(patch), Stdout: out, Stderr: errs, Limit: p.within, Grace: pagerGrace,
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case !ended.OK():
		text := fmt.Sprintf("%s: %s", name, ended.Why(p.within))
		if line, _, _ := strings.Cut(strings.TrimSpace(errs.kept.String()), "\n"); line != "" {
			text += ": " + line
		}
		return nil, team.Errorf(team.CodeUnavailable, "%s", text)
	}
	lines := sgr.Lines(strings.TrimRight(out.kept.String(), "\n"))
	if out.cut {
		lines = append(lines, fmt.Sprintf("the rest is left out: %s has printed more than %d bytes", name, p.most))
	}
	return lines, nil
}

// pagerEnv is the environment of the program: it knows the width, and runs no pager itself.
func pagerEnv(env []string, cols int) []string {
	set := map[string]string{"COLUMNS": strconv.Itoa(cols), "PAGER": "cat", "DELTA_PAGER": "cat", "BAT_PAGER": ""}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, ok := set[name]
		return ok
	})
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

// atMost keeps the beginning of what is written.
type atMost struct {
	kept bytes.Buffer
	left int
	cut  bool
}

func (w *atMost) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.left -= n
	w.cut = w.cut || n < len(b)
	_, _ = w.kept.Write(b[:n]) // it never fails
	return len(b), nil
}

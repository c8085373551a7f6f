package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	creack "github.com/creack/pty"

	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/team"
)

// attach: from the command to the whole screen of an agent with a long history.
var attach = benchmark{name: "attach", title: "Attach to first full screen", run: runAttach}

const goalAttach = 50.0 // milliseconds

// The last line of the agent's screen, and the agent.
const (
	lastLine   = "the-last-line-of-the-screen"
	paintChild = "paint"
)

// paint fills a history and then stays.
func paint() error {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "%d %s\r\n", i, strings.Repeat("history ", 8))
	}
	b.WriteString(lastLine)
	if _, err := os.Stdout.WriteString(b.String()); err != nil {
		return err
	}
	_, err := os.Stdin.Read(make([]byte, 1))
	return err
}

func runAttach(ctx context.Context, e env) (_ string, err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	empty, err := emptyProgram(ctx, e.dir)
	if err != nil {
		return "", err
	}
	s, err := newSupervised(ctx, e, "w", pty.Name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	if _, err := s.more(ctx, 1, []string{"env", envChild + "=" + paintChild, exe}); err != nil {
		return "", err
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		screen, err := s.client.Capture(ctx, s.names[0], 0)
		if err == nil && strings.Contains(screen, lastLine) {
			break
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("the agent does not paint: %w", err)
		}
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			return "", err
		}
	}
	var bare, ours []time.Duration
	for range e.rounds {
		d, err := once(ctx, &program{label: "an empty Go program", argv: []string{empty}})
		if err != nil {
			return "", err
		}
		bare = append(bare, d)
		if d, err = firstScreen(ctx, s); err != nil {
			return "", err
		}
		ours = append(ours, d)
	}
	return table(e.rounds, "teamctl attach as a process on a terminal of 200 by 50, 3000 lines of history.", []figure{
		{"p50", "an empty Go program", millis(median(bare)), millis(median(ours)), "ms", atMost(goalAttach)},
		{"p90", "an empty Go program", millis(quantile(bare, 0.9)), millis(quantile(ours, 0.9)), "ms", goal{}},
	}), nil
}

// firstScreen attaches, waits for the last line and leaves.
func firstScreen(ctx context.Context, s *supervised) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second) // kills the process, which ends the read
	defer cancel()
	cmd := exec.CommandContext(ctx, s.bin, "attach", s.names[0], "--team", s.layout.Key)
	cmd.Env = append(noTmux(os.Environ()), team.EnvHome+"="+s.layout.Home.Dir, "TERM=xterm-256color")
	began := time.Now()
	t, err := creack.StartWithSize(cmd, &creack.Winsize{Cols: 200, Rows: 50})
	if err != nil {
		return 0, err
	}
	var seen []byte
	buf := make([]byte, 32<<10)
	for !bytes.Contains(seen, []byte(lastLine)) {
		n, err := t.Read(buf)
		seen = append(seen, buf[:n]...)
		if err != nil {
			_ = cmd.Wait()
			return 0, errors.Join(fmt.Errorf("attach showed %q: %w", seen, err), t.Close())
		}
	}
	took := time.Since(began)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return took, t.Close()
}

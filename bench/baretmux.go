package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// bareTmux is a tmux server of its own with one control-mode client: what panes
// cost without us.
type bareTmux struct {
	socket string
	client *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
}

func openBareTmux(ctx context.Context, e env) (*bareTmux, error) {
	b := &bareTmux{socket: filepath.Join(e.dir, "bare")}
	if err := b.tmux(ctx, append([]string{"new-session", "-d", "-s", "bare", "-x", "200", "-y", "50", "--"}, idleAgent...)...); err != nil {
		return nil, err
	}
	b.client = exec.CommandContext(ctx, "tmux", b.args("-C", "attach-session", "-f", "no-output,ignore-size", "-t", "bare")...)
	b.client.Env = noTmux(os.Environ())
	var err error
	if b.in, err = b.client.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.client.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.client.Start(); err != nil {
		return nil, errors.Join(err, b.tmux(ctx, "kill-server"))
	}
	b.out = bufio.NewReader(out)
	return b, b.answers(1)
}

func (b *bareTmux) args(args ...string) []string {
	return append([]string{"-S", b.socket, "-f", "/dev/null"}, args...)
}

func (b *bareTmux) tmux(ctx context.Context, args ...string) error {
	return quiet(ctx, noTmux(os.Environ()), "tmux", b.args(args...)...)
}

// answers reads as many replies.
func (b *bareTmux) answers(n int) error {
	for n > 0 {
		line, err := b.out.ReadString('\n')
		switch {
		case err != nil:
			return fmt.Errorf("read tmux's answer: %w", err)
		case strings.HasPrefix(line, "%end "):
			n--
		case strings.HasPrefix(line, "%error "):
			return errors.New("tmux refuses a command")
		}
	}
	return nil
}

// windows opens n windows by requests that do not wait for each other.
func (b *bareTmux) windows(n int) (time.Duration, error) {
	line := "new-window -d -P -F '#{pane_pid}' -t bare: -- " + strings.Join(idleAgent, " ") + "\n"
	began := time.Now()
	if _, err := io.WriteString(b.in, strings.Repeat(line, n)); err != nil {
		return 0, err
	}
	err := b.answers(n)
	return time.Since(began), err
}

// processes opens n windows by a tmux process each.
func (b *bareTmux) processes(ctx context.Context, n int) (time.Duration, error) {
	began := time.Now()
	for range n {
		if err := b.tmux(ctx, append([]string{"new-window", "-d", "-t", "bare:", "--"}, idleAgent...)...); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// clear closes them again.
func (b *bareTmux) clear() error {
	if _, err := io.WriteString(b.in, "kill-window -a -t bare:0\n"); err != nil {
		return err
	}
	return b.answers(1)
}

func (b *bareTmux) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := b.tmux(ctx, "kill-server")
	_ = b.in.Close()
	_ = b.client.Wait() // its server is gone
	return err
}

// noTmux is an environment without the person's tmux.
func noTmux(environ []string) []string { return append(environ, "TMUX=", "TMUX_PANE=") }

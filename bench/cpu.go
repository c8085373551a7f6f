package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/internal/pause"
)

// cpu: what supervising costs while agents are idle, and while they print.
var cpu = benchmark{name: "cpu", title: "CPU at rest and with chatty agents", run: runCPU}

// Goals in parts of one core.
const (
	goalIdleCore   = 0.1 // percent
	goalChattyCore = 1.0 // percent
)

// chatChild is the work of a chatty agent: ten lines of 80 characters a second, of which no two
// are alike, since a screen has nothing to draw for the same line again.
const chatChild = "chat"

// chat is that agent. It ends with its terminal.
func chat() error {
	line := make([]byte, 0, 81)
	for i := range 80 {
		line = append(line, byte('a'+i%26))
	}
	line = append(line, '\n')
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	n := 0
	for range tick.C {
		n++
		copy(line, fmt.Sprintf("%08d", n))
		if _, err := os.Stdout.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func runCPU(ctx context.Context, e env) (string, error) {
	span := time.Minute
	if e.quick {
		span = 10 * time.Second
	}
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	chatty := []string{"env", envChild + "=" + chatChild, exe}
	var figures []figure
	for _, kind := range []string{tmux.Name, pty.Name} {
		for _, c := range []struct {
			what string
			n    int
			argv []string
			most float64
		}{{"idle", 50, idleAgent, goalIdleCore}, {"chatty", 20, chatty, goalChattyCore}} {
			more, err := cpuWith(ctx, e, kind, fmt.Sprintf("%d %s %s agents", c.n, c.what, kind), c.n, c.argv, span, c.most)
			if err != nil {
				return "", fmt.Errorf("%s: %w", kind, err)
			}
			figures = append(figures, more...)
		}
	}
	return table(1, fmt.Sprintf("Over %s; %% of one core. Wake-ups are voluntary context switches of all threads. Chatty is ten lines of 80 characters a second from each.", span), figures), nil
}

func cpuWith(ctx context.Context, e env, kind, what string, n int, argv []string, span time.Duration, most float64) (_ []figure, err error) {
	dir, err := os.MkdirTemp(e.dir, "c")
	if err != nil {
		return nil, err
	}
	e.dir = dir
	s, err := newSupervised(ctx, e, "h", kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	if _, err := s.more(ctx, n, argv); err != nil {
		return nil, err
	}
	if err := pause.For(ctx, 5*time.Second); err != nil { // ready, settled, told
		return nil, err
	}
	watched := []struct {
		what string
		pids []int
		goal goal
	}{{"supervisor", []int{s.cmd.Process.Pid}, atMost(most)}}
	shims, err := s.shims()
	if err != nil {
		return nil, err
	}
	watched = append(watched, watched[0])
	watched[1].what, watched[1].pids, watched[1].goal = "all shims", shims, goal{}
	if kind == tmux.Name {
		clients, err := childrenOf(s.cmd.Process.Pid, "-C")
		if err != nil {
			return nil, err
		}
		loggers, err := s.loggers()
		if err != nil {
			return nil, err
		}
		next := watched[1]
		next.what, next.pids, next.goal = "control client", clients, atMost(most)
		watched = append(watched, next)
		next.what, next.pids, next.goal = "all log writers", loggers, goal{}
		watched = append(watched, next)
	}
	before := make([]activity, len(watched))
	for i, w := range watched {
		if before[i], err = activityOf(w.pids); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if err := pause.For(ctx, span); err != nil {
		return nil, err
	}
	var figures []figure
	for i, w := range watched {
		now, err := activityOf(w.pids)
		if err != nil {
			return nil, err
		}
		used, took := now.since(before[i]), time.Since(began)
		figures = append(figures, figure{what + ", " + w.what, "", 0, 100 * used.busy.Seconds() / took.Seconds(), "%", w.goal})
		figures = append(figures, figure{what + ", " + w.what + ", wake-ups", "", 0, float64(used.wakes) / took.Minutes(), "a minute", goal{}})
	}
	return figures, nil
}

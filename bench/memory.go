package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/internal/pause"
)

// memoryUse: what a supervised agent costs beside itself, and what the supervisor
// has at 0, 20 and 200 of them.
var memoryUse = benchmark{name: "memory", title: "Memory at rest", run: runMemory, note: memoryNote}

const memoryNote = `What resident means here: some 22 MB of each process are pages of the program's own file, which the kernel maps around each page that is touched and which all processes of teamctl share; the shims show it, with 2 MB of their own. ` +
	`What a supervisor adds to the machine is what is private with agents beside it (without any there is nobody to share with).`

const goalShimMB = 3.0

// goalSupervisorMB is the most that a supervisor may have resident, by its agents.
var goalSupervisorMB = map[int]float64{20: 25, 200: 40}

func runMemory(ctx context.Context, e env) (string, error) {
	sizes := []int{0, 20, 200}
	if e.quick {
		sizes = []int{0, 20}
	}
	bare, err := bareIdle(ctx, e)
	if err != nil {
		return "", err
	}
	var figures []figure
	for _, kind := range []string{tmux.Name, pty.Name} {
		more, err := memoryWith(ctx, e, kind, sizes, bare)
		if err != nil {
			return "", fmt.Errorf("%s: %w", kind, err)
		}
		figures = append(figures, more...)
	}
	return table(1, "Private is what a process shares with no other; the floor is a Go program that only waits.", figures), nil
}

func memoryWith(ctx context.Context, e env, kind string, sizes []int, bare memory) (_ []figure, err error) {
	s, err := newSupervised(ctx, e, "m"+kind, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	var figures []figure
	for _, n := range sizes {
		if _, err := s.more(ctx, n-len(s.names), idleAgent); err != nil {
			return nil, err
		}
		if err := pause.For(ctx, 2*time.Second); err != nil { // what is still going on after a start
			return nil, err
		}
		m, err := memoryOf(s.cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		g := goal{}
		if most := goalSupervisorMB[n]; most > 0 {
			g = atMost(most)
		}
		figures = append(figures, figure{fmt.Sprintf("supervisor, %d %s agents, resident", n, kind), "resident", bare.resident, m.resident, "MB", g},
			figure{fmt.Sprintf("supervisor, %d %s agents, private", n, kind), "private", bare.private, m.private, "MB", goal{}})
	}
	shims, err := s.shims()
	if err != nil {
		return nil, err
	}
	more, err := memoryEach(shims, kind+" shim", bare, atMost(goalShimMB))
	if err != nil {
		return nil, err
	}
	figures = append(figures, more...)
	if kind != tmux.Name {
		return figures, nil
	}
	loggers, err := s.loggers()
	if err != nil {
		return nil, err
	}
	more, err = memoryEach(loggers, "tmux log writer", bare, goal{})
	return append(figures, more...), err
}

// memoryEach is the middle one of like processes.
func memoryEach(pids []int, what string, bare memory, g goal) ([]figure, error) {
	var resident, private []float64
	for _, pid := range pids {
		m, err := memoryOf(pid)
		if err != nil {
			return nil, err
		}
		resident, private = append(resident, m.resident), append(private, m.private)
	}
	return []figure{
		{"each " + what + ", resident", "resident", bare.resident, middle(resident), "MB", goal{}},
		{"each " + what + ", private", "private", bare.private, middle(private), "MB", g},
	}, nil
}

// bareIdle is the memory of a Go program that waits for its input to end.
func bareIdle(ctx context.Context, e env) (m memory, err error) {
	bin, err := buildGo(ctx, e.dir, "idle", "package main\n\nimport \"os\"\n\nfunc main() { _, _ = os.Stdin.Read(make([]byte, 1)) }\n")
	if err != nil {
		return m, err
	}
	cmd := exec.CommandContext(ctx, bin)
	in, err := cmd.StdinPipe()
	if err != nil {
		return m, err
	}
	if err := cmd.Start(); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, in.Close(), cmd.Wait()) }()
	if err := pause.For(ctx, 200*time.Millisecond); err != nil {
		return m, err
	}
	return memoryOf(cmd.Process.Pid)
}

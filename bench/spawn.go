package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	creack "github.com/creack/pty"

	"github.com/teamctl/teamctl/backends/inproc"
	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/tmux"
)

// spawn: from the order to up, for one agent and for many at once, per backend,
// without worktree and ledger.
var spawn = benchmark{name: "spawn", title: "Spawn to up", run: runSpawn, note: spawnNote}

const spawnNote = `What stands behind the ratios: where the floor starts one small C program, a teammate is three processes: the shim, the agent and, in tmux, the writer of its log. The shim and the writer are this program, whose start costs as much as the floor's whole window (see CLI start-up), ` +
	`so many at once are bounded by the cores, not by the questions to tmux: those are three for all that wait together, and three more for each further window. ` +
	`The floor is new-window, not split-window: fifty panes do not fit into one window. In-process agents are compared with a process of their own.`

// Goals of a spawn: one against a bare window, many against bare windows that are
// asked for without waiting, PTYs against the bare start of a terminal.
const (
	goalOneWindow   = 2.5
	goalManyWindows = 2.0
	goalPTYs        = 2.5
	goalOverExec    = 3.0 // milliseconds
)

// spawnSize is one size of a spawn and how often it is measured.
type spawnSize struct{ n, rounds int }

func spawnSizes(e env) []spawnSize {
	if e.quick {
		return []spawnSize{{1, 9}, {10, 5}, {50, 5}}
	}
	return []spawnSize{{1, 21}, {10, 11}, {50, 7}, {200, 5}}
}

func runSpawn(ctx context.Context, e env) (string, error) {
	var figures []figure
	for _, f := range []func(context.Context, env) ([]figure, error){spawnTmux, spawnPTY, spawnInproc} {
		more, err := f(ctx, e)
		if err != nil {
			return "", err
		}
		figures = append(figures, more...)
	}
	return table(e.rounds, fmt.Sprintf("Medians of %d (one agent) to %d (the most) rounds.", spawnSizes(e)[0].rounds, spawnSizes(e)[len(spawnSizes(e))-1].rounds), figures), nil
}

// spawned is one round of ours.
func spawned(ctx context.Context, f *fleet, n int) (time.Duration, error) {
	handles, took, err := f.up(ctx, n, idleAgent)
	return took, errors.Join(err, f.down(ctx, handles))
}

func spawnTmux(ctx context.Context, e env) (_ []figure, err error) {
	f, err := openFleet(e, tmux.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	bare, err := openBareTmux(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.close(ctx)) }()
	if _, err := spawned(ctx, f, 1); err != nil { // the server comes up
		return nil, err
	}
	var figures []figure
	for _, size := range spawnSizes(e) {
		var piped, execed, ours []time.Duration
		for range size.rounds {
			d, err := bare.windows(size.n)
			if err == nil {
				err = bare.clear()
			}
			if err != nil {
				return nil, err
			}
			piped = append(piped, d)
			d, err = bare.processes(ctx, size.n)
			if err == nil {
				err = bare.clear()
			}
			if err != nil {
				return nil, err
			}
			execed = append(execed, d)
			if d, err = spawned(ctx, f, size.n); err != nil {
				return nil, err
			}
			ours = append(ours, d)
		}
		g := ratioAtMost(goalManyWindows)
		over := goal{}
		if size.n == 1 {
			g, over = ratioAtMost(goalOneWindow), atMost(millis(median(execed))+goalOverExec)
		}
		what := fmt.Sprintf("tmux, %d", size.n)
		figures = append(figures,
			figure{what, "control-mode new-window, pipelined", millis(median(piped)), millis(median(ours)), "ms", g},
			figure{what, "a tmux process per window", millis(median(execed)), millis(median(ours)), "ms", over})
	}
	return figures, nil
}

func spawnPTY(ctx context.Context, e env) (_ []figure, err error) {
	f, err := openFleet(e, pty.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	return spawnAgainst(ctx, e, f, "pty", "creack/pty start", ratioAtMost(goalPTYs), barePTYs)
}

func spawnInproc(ctx context.Context, e env) (_ []figure, err error) {
	f, err := openFleet(e, inproc.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	return spawnAgainst(ctx, e, f, "in-process", "fork and exec", ratioAtMost(1), bareProcesses)
}

// spawnAgainst measures a fleet against a bare way to start n processes.
func spawnAgainst(ctx context.Context, e env, f *fleet, what, floor string, g goal, bare func(ctx context.Context, n int) (time.Duration, error)) ([]figure, error) {
	var figures []figure
	for _, size := range spawnSizes(e) {
		var floors, ours []time.Duration
		for range size.rounds {
			d, err := bare(ctx, size.n)
			if err != nil {
				return nil, err
			}
			floors = append(floors, d)
			if d, err = spawned(ctx, f, size.n); err != nil {
				return nil, err
			}
			ours = append(ours, d)
		}
		goal := g
		if what == "pty" && size.n == 1 {
			goal.of = "" // one start has no other core to spread over: no goal was set
		}
		figures = append(figures, figure{fmt.Sprintf("%s, %d", what, size.n), floor, millis(median(floors)), millis(median(ours)), "ms", goal})
	}
	return figures, nil
}

// barePTYs starts n agents on terminals without anything around them.
func barePTYs(ctx context.Context, n int) (time.Duration, error) {
	return bareStarts(ctx, n, func(cmd *exec.Cmd) (*os.File, error) { return creack.Start(cmd) })
}

func bareProcesses(ctx context.Context, n int) (time.Duration, error) {
	return bareStarts(ctx, n, func(cmd *exec.Cmd) (*os.File, error) { return nil, cmd.Start() })
}

func bareStarts(ctx context.Context, n int, start func(*exec.Cmd) (*os.File, error)) (took time.Duration, err error) {
	cmds, terminals := make([]*exec.Cmd, 0, n), make([]*os.File, 0, n)
	defer func() {
		for _, cmd := range cmds {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		for _, t := range terminals {
			if t != nil {
				_ = t.Close()
			}
		}
	}()
	began := time.Now()
	for range n {
		cmd := exec.CommandContext(ctx, idleAgent[0], idleAgent[1:]...)
		t, err := start(cmd)
		if err != nil {
			return 0, err
		}
		cmds, terminals = append(cmds, cmd), append(terminals, t)
	}
	return time.Since(began), nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

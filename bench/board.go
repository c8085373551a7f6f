package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// board: reading a board of a thousand tasks, in the process and as a command.
var board = benchmark{name: "board", title: "A list of 1000 tasks", run: runBoard}

func runBoard(ctx context.Context, e env) (string, error) {
	w, err := newWorld(ctx, e, "w", 1)
	if err != nil {
		return "", err
	}
	if err := w.tasks(ctx, 1000); err != nil {
		return "", err
	}
	led, closeDB, err := w.open(ctx, true)
	if err != nil {
		return "", err
	}
	defer func() { _ = closeDB() }()
	var times []time.Duration
	for range max(e.rounds, 40) {
		began := time.Now()
		tasks, err := led.Tasks(ctx, ledger.TaskFilter{})
		if err != nil {
			return "", err
		}
		if len(tasks) != 1000 {
			return "", fmt.Errorf("%d tasks", len(tasks))
		}
		times = append(times, time.Since(began))
	}
	empty, err := emptyProgram(ctx, e.dir)
	if err != nil {
		return "", err
	}
	bin, err := filepath.Abs(e.teamctl)
	if err != nil {
		return "", err
	}
	environ := append(os.Environ(), team.EnvHome+"="+w.layout.Home.Dir, "TMUX=", "TMUX_PANE=")
	floor := &program{label: "an empty Go program", argv: []string{empty}}
	ls := &program{label: "teamctl task ls", argv: []string{bin, "task", "ls"}, env: environ}
	js := &program{label: "teamctl task ls --json", argv: []string{bin, "task", "ls", "--json"}, env: environ}
	if err := interleave(ctx, e.rounds, []*program{floor, ls, js}); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| | p50 ms | p90 ms | x empty Go |\n|---|---|---|---|\n| in the process | %s | %s | %.2f |\n", where(e.rounds),
		ms(median(times)), ms(quantile(times, 0.9)), float64(median(times))/float64(median(floor.times)))
	for _, p := range []*program{floor, ls, js} {
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f |\n", p.label, ms(median(p.times)), ms(quantile(p.times, 0.9)), ratio(p, floor))
	}
	return b.String(), nil
}

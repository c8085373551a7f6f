package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
)

// growth: what one claim costs on boards of different sizes, and behind tasks that
// are blocked.
var growth = benchmark{name: "growth", title: "One claim on a long board", run: runGrowth}

const goalGrowth = 1.3 // x the smallest board

func runGrowth(ctx context.Context, e env) (string, error) {
	type board struct {
		label string
		size  int
		led   *ledger.Ledger
		times []time.Duration
	}
	boards := []*board{{label: "1 k", size: 1_000}, {label: "10 k", size: 10_000}, {label: "100 k", size: 100_000}, {label: "1 k behind 20 k blocked", size: 1_000}}
	if !e.quick {
		boards = append(boards, &board{label: "1 M", size: 1_000_000})
	}
	var closers []func() error
	defer func() {
		for _, c := range closers {
			_ = c()
		}
	}()
	for i, b := range boards {
		w, err := newWorld(ctx, e, fmt.Sprint("g", i), 1)
		if err != nil {
			return "", err
		}
		led, closeDB, err := w.open(ctx, true)
		if err != nil {
			return "", err
		}
		closers = append(closers, closeDB)
		b.led = led
		if strings.Contains(b.label, "blocked") {
			batch := []ledger.NewTask{{Ref: "gate", Subject: "gate", Priority: 9}}
			for range 20_000 {
				batch = append(batch, ledger.NewTask{Subject: "blocked", Priority: 5, DependsOn: []string{"gate"}})
			}
			if _, err := led.CreateTasks(ctx, batch, "bench"); err != nil {
				return "", err
			}
			if _, err := led.Claim(ctx, ledger.ClaimIn{Owner: "gatekeeper", Lease: time.Hour}); err != nil {
				return "", err
			}
		}
		if err := w.tasks(ctx, b.size); err != nil {
			return "", err
		}
		// What was made behind the ledger's back is what it takes for tasks.
		if n, err := led.Counts(ctx); err != nil || n.Pending < b.size {
			return "", errors.Join(fmt.Errorf("the board has %d pending tasks of %d", n.Pending, b.size), err)
		}
	}
	rounds := max(e.rounds*5, 200)
	for r := range rounds {
		for i := range boards {
			b := boards[(i+r)%len(boards)]
			began := time.Now()
			task, err := b.led.Claim(ctx, ledger.ClaimIn{Owner: memberSession(0), Lease: time.Hour})
			d := time.Since(began)
			if err == nil && task == nil {
				err = errors.New("the board is empty")
			}
			if err != nil {
				return "", err
			}
			if err := b.led.Release(ctx, ledger.TaskRef{ID: task.ID, Owner: task.Owner, Attempt: task.Attempt}); err != nil {
				return "", err
			}
			b.times = append(b.times, d)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s Direct, durable.\n\n| board | p50 ms | p90 ms | x 1 k | goal |\n|---|---|---|---|---|\n", where(rounds))
	small := median(boards[0].times)
	for i, b := range boards {
		x := float64(median(b.times)) / float64(small)
		goal := ""
		if i > 0 {
			goal = reached(x <= goalGrowth, fmt.Sprintf("<= %.1f x", goalGrowth))
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %.2f | %s |\n", b.label, ms(median(b.times)), ms(quantile(b.times, 0.9)), x, goal)
	}
	return out.String(), nil
}

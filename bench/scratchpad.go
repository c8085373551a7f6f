package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// scratchpad: merges of one document by many, each of which reads, computes and
// merges with the version that it read, until that is still the current one.
var scratchpad = benchmark{name: "scratchpad", title: "Scratchpad merges", run: runScratchpad}

func childMerge(ctx context.Context, a childArgs) (func() (time.Duration, bool, error), func() error, error) {
	led, closeDB, err := openLedger(ctx, team.Home{Dir: a.Home}.Team("b"), a.Direct)
	if err != nil {
		return nil, nil, err
	}
	key := memberName(a.Number)
	n := 0
	return func() (time.Duration, bool, error) {
		n++
		patch, err := json.Marshal(map[string]int{key: n})
		if err != nil {
			return 0, false, err
		}
		for {
			pad, err := led.Scratchpad(ctx)
			if err != nil {
				return 0, false, err
			}
			_, err = led.MergeScratchpad(ctx, patch, pad.Version)
			if team.ReasonOf(err) == team.ReasonScratchpad {
				continue // somebody was faster
			}
			return 0, true, err
		}
	}, closeDB, nil
}

func runScratchpad(ctx context.Context, e env) (string, error) {
	const rounds = 3
	w, err := newWorld(ctx, e, "w", 16)
	if err != nil {
		return "", err
	}
	stop, err := w.supervise(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	type line struct {
		n     int
		rates []float64
		fair  []float64
		times []time.Duration
	}
	lines := []*line{{n: 1}, {n: 4}, {n: 16}}
	for r := range rounds {
		for i := range lines {
			l := lines[(i+r)%len(lines)]
			res, err := crowd(ctx, "merge", l.n, childArgs{Home: w.layout.Home.Dir, For: claimSpan})
			if err != nil {
				return "", err
			}
			ops, times, fair := sum(res)
			l.rates, l.fair, l.times = append(l.rates, float64(ops)/claimSpan.Seconds()), append(l.fair, fair), append(l.times, times...)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s Through the supervisor; the time has all tries in it.\n\n| processes | merges/s | x one | fairness | p50 ms | p99 ms |\n|---|---|---|---|---|---|\n", where(rounds))
	for _, l := range lines {
		fmt.Fprintf(&b, "| %d | %.0f | %.2f | %.2f | %s | %s |\n", l.n, middle(l.rates), middle(l.rates)/middle(lines[0].rates), middle(l.fair), ms(median(l.times)), ms(quantile(l.times, 0.99)))
	}
	return b.String(), nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// copies: what writers feel of a copy of the ledger that is made meanwhile.
var copies = benchmark{name: "copy", title: "Writers beside a copy of the ledger", run: runCopies, note: copiesNote}

const copiesNote = "The copies follow each other without a pause, in a process of their own, as teamctl ledger backup makes one: a supervisor makes " +
	"one after a run of work, once a minute at most, and else once an hour. A copy takes no lock that a writer waits for. It is made in " +
	"steps, each of which goes to disk by itself, and rests between them while others write, so it takes longer than it could."

const (
	goalCopyP50 = 1.5
	goalCopyP99 = 3
)

// childCopy copies the ledger.
func childCopy(ctx context.Context, a childArgs) (func() (time.Duration, bool, error), func() error, error) {
	l := team.Home{Dir: a.Home}.Team("b")
	led, closeDB, err := openLedger(ctx, l, true)
	if err != nil {
		return nil, nil, err
	}
	return func() (time.Duration, bool, error) {
		_, err := led.CopyTo(ctx, l.Copies(), services.CopiesKept)
		return 0, true, err
	}, closeDB, nil
}

func runCopies(ctx context.Context, e env) (string, error) {
	rounds, span, size := max(e.rounds/4, 7), 3*time.Second, 100_000
	if e.quick {
		rounds = 3
	}
	w, err := newWorld(ctx, e, "c", 4)
	if err != nil {
		return "", err
	}
	// What has happened to the tasks of a long run, too: most of a ledger is events.
	if err := w.tasks(ctx, size); err != nil {
		return "", err
	}
	stop, err := w.supervise(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	type line struct {
		writers     int
		alone, by   []time.Duration
		rate, rate2 []float64
	}
	lines := []*line{{writers: 1}, {writers: 4}}
	var took []time.Duration
	var spent []float64
	for r := range rounds {
		for i := range 2 * len(lines) {
			i = (i + r) % (2 * len(lines))
			l, beside := lines[i/2], i%2 == 1
			args := childArgs{Home: w.layout.Home.Dir, For: span}
			var done chan error
			if beside {
				done = make(chan error, 1)
				go func() {
					res, err := crowd(ctx, "copy", 1, childArgs{Home: args.Home, For: span + time.Second})
					if err == nil {
						took = append(took, res[0].Times...)
						spent = append(spent, millis(res[0].CPU)/float64(max(res[0].Ops, 1)))
					}
					done <- err
				}()
				if err := pause.For(ctx, time.Second/2); err != nil {
					return "", err
				}
			}
			res, err := crowd(ctx, "claim", l.writers, args)
			if beside {
				if cerr := <-done; err == nil {
					err = cerr
				}
			}
			if err != nil {
				return "", err
			}
			ops, times, _ := sum(res)
			rate := float64(ops) / span.Seconds()
			if beside {
				l.by, l.rate2 = append(l.by, times...), append(l.rate2, rate)
			} else {
				l.alone, l.rate = append(l.alone, times...), append(l.rate, rate)
			}
		}
	}
	if len(took) == 0 {
		return "", fmt.Errorf("no copy was made")
	}
	var figures []figure
	for _, l := range lines {
		what := fmt.Sprintf("a claim, %d writers", l.writers)
		if l.writers == 1 {
			what = "a claim, 1 writer"
		}
		figures = append(figures,
			figure{what + ", p50", "without a copy", millis(median(l.alone)), millis(median(l.by)), "ms", ratioAtMost(goalCopyP50)},
			figure{what + ", p99", "without a copy", millis(quantile(l.alone, 0.99)), millis(quantile(l.by, 0.99)), "ms", ratioAtMost(goalCopyP99)},
			figure{what + ", rate", "without a copy", middle(l.rate), middle(l.rate2), "a second", goal{}})
	}
	list, err := ledger.Copies(w.layout.Copies())
	if err != nil || len(list) == 0 {
		return "", fmt.Errorf("list the copies: %d found: %w", len(list), err)
	}
	figures = append(figures,
		figure{"one copy, p50", "", 0, millis(median(took)), "ms", goal{}},
		figure{"one copy, of processor", "", 0, middle(spent), "ms", goal{}})
	fi, err := os.Stat(filepath.Clean(list[0].Path))
	if err != nil {
		return "", err
	}
	return table(rounds, fmt.Sprintf("Through the supervisor; %v each. %d copies of a ledger of %.0f MB with %d tasks.", span, len(took), float64(fi.Size())/(1<<20), size), figures), nil
}

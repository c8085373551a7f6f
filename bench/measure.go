package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// program is one thing to start and wait for.
type program struct {
	label string
	argv  []string
	env   []string // nil: the environment of bench
	input string   // the file that it reads; "": nothing
	times []time.Duration
	used  []time.Duration // processor time of each, of the process alone
}

// interleave starts every program once a round, in another order each round, so
// that drift of the machine falls on all alike. The first rounds only warm up.
// A program that does not exit 0 ends the benchmark.
func interleave(ctx context.Context, rounds int, programs []*program) error {
	const warm = 3
	for r := range warm + rounds {
		for i := range programs {
			p := programs[(i+r)%len(programs)]
			d, used, err := onceUsing(ctx, p)
			if err != nil {
				return err
			}
			if r >= warm {
				p.times, p.used = append(p.times, d), append(p.used, used)
			}
		}
	}
	return nil
}

// once is the time from before fork to after wait.
func once(ctx context.Context, p *program) (time.Duration, error) {
	d, _, err := onceUsing(ctx, p)
	return d, err
}

// onceUsing is once with the processor time of the process.
func onceUsing(ctx context.Context, p *program) (d, used time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	path, err := exec.LookPath(p.argv[0])
	if err != nil {
		return 0, 0, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	defer null.Close()
	env := p.env
	if env == nil {
		env = os.Environ()
	}
	stdin := null
	if p.input != "" {
		if stdin, err = os.Open(p.input); err != nil {
			return 0, 0, err
		}
		defer stdin.Close()
	}
	// os.StartProcess, not exec.Cmd: no goroutines and pipes between us and the figure.
	begin := time.Now()
	proc, err := os.StartProcess(path, p.argv, &os.ProcAttr{Env: env, Files: []*os.File{stdin, null, os.Stderr}})
	if err != nil {
		return 0, 0, fmt.Errorf("start %s: %w", p.label, err)
	}
	state, err := proc.Wait()
	d = time.Since(begin)
	if err != nil {
		return 0, 0, fmt.Errorf("wait for %s: %w", p.label, err)
	}
	if !state.Success() {
		return 0, 0, fmt.Errorf("%s: %s", p.label, state)
	}
	return d, state.UserTime() + state.SystemTime(), nil
}

// quantile q (0 to 1) of the times, which must not be empty; 0.5 is the median.
func quantile(times []time.Duration, q float64) time.Duration {
	s := slices.Sorted(slices.Values(times))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func median(times []time.Duration) time.Duration { return quantile(times, 0.5) }

// middle is the median of figures.
func middle(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	return s[len(s)/2]
}

// ratio of two medians.
func ratio(a, b *program) float64 {
	return float64(median(a.times)) / float64(median(b.times))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

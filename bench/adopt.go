package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/team"
)

// adopt: from the start of a supervisor to its first answer, when its predecessor
// was killed with so many agents alive.
var adopt = benchmark{name: "adopt", title: "Adoption after kill -9", run: runAdopt}

// goalAdopt is own: the fault catalogue gives 2 s for 20.
const goalAdopt = 2000.0 // milliseconds, for 200

func runAdopt(ctx context.Context, e env) (string, error) {
	n, rounds := 200, 7
	if e.quick {
		n, rounds = 20, 3
	}
	var figures []figure
	for _, kind := range []string{tmux.Name, pty.Name} {
		f, err := adoptOf(ctx, e, kind, n, rounds)
		if err != nil {
			return "", fmt.Errorf("%s: %w", kind, err)
		}
		figures = append(figures, f...)
	}
	return table(rounds, "The floor is a supervisor that starts with nobody. None may be started anew.", figures), nil
}

func adoptOf(ctx context.Context, e env, kind string, n, rounds int) (_ []figure, err error) {
	s, err := newSupervised(ctx, e, "a"+kind, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	var empty, full []time.Duration
	again := func(times *[]time.Duration) error {
		if err := s.crash(); err != nil {
			return err
		}
		d, err := s.begin(ctx)
		*times = append(*times, d)
		return err
	}
	for range rounds {
		if err := again(&empty); err != nil {
			return nil, err
		}
	}
	up, err := s.more(ctx, n, idleAgent)
	if err != nil {
		return nil, err
	}
	before, err := s.shims()
	if err != nil {
		return nil, err
	}
	for range rounds {
		if err := again(&full); err != nil {
			return nil, err
		}
	}
	after, err := s.shims()
	if err != nil {
		return nil, err
	}
	lost := 0
	for i := range before {
		if before[i] != after[i] {
			lost++
		}
	}
	st, err := s.client.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range st.Members {
		if m.Name != team.LeadName && m.Observed != team.Running {
			lost++
		}
	}
	what := fmt.Sprintf("%d %s agents", n, kind)
	return []figure{
		{what + " adopted", "with nobody", millis(median(empty)), millis(median(full)), "ms", atMost(goalAdopt)},
		{what + ", not the same afterwards", "", 0, float64(lost), "", atMost(0)},
		{what + " up through the supervisor at once, each", "", 0, millis(up) / float64(n), "ms", goal{}},
	}, nil
}

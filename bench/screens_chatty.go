package main

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/internal/pause"
)

// screenChatty: processor time while twenty members write and one is on the screen.
func screenChatty(ctx context.Context, e env) (figures []figure, err error) {
	for _, kind := range []string{pty.Name, tmux.Name} {
		more, err := chattyOn(ctx, e, kind)
		if err != nil {
			return nil, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

func chattyOn(ctx context.Context, e env, kind string) (figures []figure, err error) {
	s, err := newScreens(ctx, e, "c"+kind[:1], kind, 50, 100, 20)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	span := 20 * time.Second
	if e.quick {
		span = 5 * time.Second
	}
	if err := pause.For(ctx, 5*time.Second); err != nil { // the members have come up
		return nil, err
	}
	share := func(a activity) float64 { return 100 * a.busy.Seconds() / span.Seconds() }
	others := []struct {
		what string
		pids []int
	}{{"supervisor", []int{s.cmd.Process.Pid}}}
	if kind == tmux.Name {
		clients, err := childrenOf(s.cmd.Process.Pid, "-C")
		if err != nil {
			return nil, err
		}
		server, ok := tmux.Recorded(s.layout)
		if !ok {
			return nil, errors.New("the tmux server is not recorded")
		}
		others = append(others, others[0])
		others[1].what, others[1].pids = "tmux", append(clients, server.PID)
	}
	// spend runs during and returns what the others have taken meanwhile.
	spend := func(during func() error) ([]float64, error) {
		before := make([]activity, len(others))
		out := make([]float64, len(others))
		for i, o := range others {
			if before[i], err = activityOf(o.pids); err != nil {
				return nil, err
			}
		}
		if err := during(); err != nil {
			return nil, err
		}
		for i, o := range others {
			now, err := activityOf(o.pids)
			if err != nil {
				return nil, err
			}
			out[i] = share(now.since(before[i]))
		}
		return out, nil
	}
	without, err := spend(func() error { return pause.For(ctx, span) })
	if err != nil {
		return nil, err
	}
	watched, err := s.show(ctx, "--select", s.names[0])
	if err != nil {
		return nil, err
	}
	defer watched.end()
	if err := watched.until(ctx, "live"); err != nil {
		return nil, err
	}
	var used activity
	var writes int
	with, err := spend(func() (err error) {
		used, writes, err = watched.used(ctx, span)
		return err
	})
	if err != nil {
		return nil, err
	}
	busy := "20 chatty " + kind + " members, one on the screen: "
	figures = append(figures,
		figure{busy + "its processor time", "", 0, share(used), "% of a core", atMost(2)},
		figure{busy + "writes", "", 0, float64(writes) / span.Seconds(), "a second", atMost(20)})
	for i, o := range others {
		limit := goal{}
		if o.what == "tmux" {
			limit = atMost(2)
		}
		figures = append(figures, figure{busy + o.what + " on top of what it takes without a screen", "", 0, max(0, with[i]-without[i]), "% of a core", limit})
		figures = append(figures, figure{busy + o.what, "without a screen", without[i], with[i], "% of a core", goal{}})
	}
	return figures, nil
}

package main

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// teamsWatch wakes when any team is changed, created or deleted.
type teamsWatch struct {
	env  *tool.Env
	dirs dirwatch.Hub  // of the directory of teams
	came chan struct{} // a team may have come or gone
	out  chan struct{}
	stop context.CancelFunc
	done sync.WaitGroup

	mu   sync.Mutex
	seen map[string]bool // the watched teams
}

func (a *app) teamsChange(ctx context.Context) (<-chan struct{}, func(), error) {
	env, err := a.tools()
	if err != nil {
		return nil, nil, err
	}
	w := &teamsWatch{env: env, came: make(chan struct{}, 1), out: make(chan struct{}, 1), seen: map[string]bool{}}
	deaf, err := w.dirs.Watch(env.Home.TeamsDir(), func(dirwatch.Event) { wakeOne(w.came) })
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, team.Errorf(team.CodeNotFound, "there is no team yet").WithReason(team.ReasonTeamNotFound).WithHint("teamctl create demo --repo .")
		}
		return nil, nil, team.Errorf(team.CodeUnavailable, "watch the teams: %w", err)
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.wake()
	w.done.Go(func() { w.loop(ctx) })
	return w.out, func() {
		w.stop()
		deaf()
		w.done.Wait()
	}, nil
}

func (w *teamsWatch) wake() { wakeOne(w.out) }

// wakeOne leaves at most one token.
func wakeOne(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *teamsWatch) loop(ctx context.Context) {
	w.look(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.came:
			w.look(ctx)
			w.wake()
		}
	}
}

// look starts watching new teams. A team that cannot be opened is retried when a team is created
// or deleted; the list has a row for it anyway.
func (w *teamsWatch) look(ctx context.Context) {
	list, err := w.env.Teams(ctx)
	if err != nil {
		return // the list reports the error
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range list {
		if !w.seen[t.Key] {
			w.seen[t.Key] = true
			w.done.Go(func() { w.follow(ctx, t.Key) })
		}
	}
}

// follow wakes for one team until it is deleted.
func (w *teamsWatch) follow(ctx context.Context, key string) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.seen, key)
	}()
	t, err := w.env.Open(ctx, key)
	if err != nil {
		return
	}
	defer func() { _ = t.Close() }()
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return
	}
	defer stop()
	for range changes {
		w.wake()
		if _, err := w.env.Resolve(ctx, key); err != nil {
			return
		}
	}
}

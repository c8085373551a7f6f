package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/inproc"
	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/team"
)

// startsAtOnce is how many members the supervisor starts at the same time.
const startsAtOnce = 8

// idleAgent is an agent that does nothing: the cheapest process that stays.
var idleAgent = []string{"sleep", "100000"}

// fleet is a backend with what it needs, as a supervisor has it, but without
// ledger and worktrees.
type fleet struct {
	layout   team.Layout
	backend  backends.Backend
	notifier *bundle.Notifier
	serial   int // agents so far: names are not used again
}

// openFleet makes the backend kind for a team of its own.
func openFleet(e env, kind string) (*fleet, error) {
	if err := os.Setenv(team.EnvRuntime, filepath.Join(e.dir, "r")); err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(e.teamctl)
	if err != nil {
		return nil, err
	}
	f := &fleet{layout: team.Home{Dir: filepath.Join(e.dir, "h")}.Team("f" + kind)}
	for _, dir := range []string{f.layout.Dir, f.layout.Runtime()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if f.notifier, err = bundle.Listen(f.layout.NotifySocket()); err != nil {
		return nil, err
	}
	argv := []string{bin, "shim"}
	switch kind {
	case tmux.Name:
		f.backend = tmux.New(tmux.Options{Layout: f.layout, ShimArgv: argv, Notifier: f.notifier})
	case pty.Name:
		f.backend = pty.New(pty.Options{Layout: f.layout, ShimArgv: argv, Notifier: f.notifier})
	default:
		f.backend = inproc.New(inproc.Options{Layout: f.layout, Run: func(ctx context.Context, _ backends.Launch, _ io.Writer) error {
			<-ctx.Done()
			return nil
		}})
	}
	return f, nil
}

// launch is the next agent's.
func (f *fleet) launch(argv []string) backends.Launch {
	f.serial++
	name := fmt.Sprintf("a%d", f.serial)
	return backends.Launch{
		Team: f.layout.Key, Agent: name, Generation: team.NewUUID(), Argv: argv,
		Env: os.Environ(), Dir: f.layout.Dir, Bundle: f.layout.Bundle(name), Notify: f.notifier.Path(), Title: name, Color: "blue",
	}
}

// up starts n agents and returns when all of them are up, and how long that took.
func (f *fleet) up(ctx context.Context, n int, argv []string) ([]backends.Handle, time.Duration, error) {
	launches := make([]backends.Launch, n)
	for i := range launches {
		launches[i] = f.launch(argv)
	}
	handles := make([]backends.Handle, n)
	began := time.Now()
	err := atOnce(n, startsAtOnce, func(i int) (err error) {
		handles[i], err = f.backend.Start(ctx, launches[i])
		return err
	})
	return handles, time.Since(began), err
}

// down ends agents and removes their panes.
func (f *fleet) down(ctx context.Context, handles []backends.Handle) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return atOnce(len(handles), startsAtOnce, func(i int) error {
		h := handles[i]
		if h == nil {
			return nil
		}
		err := errors.Join(h.Stop(ctx, time.Second), h.Dispose(ctx))
		h.Detach()
		return err
	})
}

// atOnce calls f with 0 to n-1, most of them at the same time.
func atOnce(n, most int, f func(i int) error) error {
	var work sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, most)
	for i := range n {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// close ends what the team still has.
func (f *fleet) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(f.backend.CloseTeam(ctx), f.backend.Close(), f.notifier.Close())
}

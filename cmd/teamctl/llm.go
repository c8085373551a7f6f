package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/agent/program"
	"github.com/teamctl/teamctl/team"
)

func newLLM(a *app) *cobra.Command { return newLLMAt(a, nil) }

// newLLMAt is the built-in agent with a model at a workplace; nil is this process.
func newLLMAt(a *app, at *workplace) *cobra.Command {
	return builtInCommand("llm", "The built-in agent with a model (started by the supervisor)", func(ctx context.Context, id agent.Identity) error {
		if at != nil {
			return a.serveSessions(ctx, id, *at, nil, nil)
		}
		relayed := func() bool { return true } // it ends the turn, not the agent
		a.interrupt.Store(&relayed)
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		defer signal.Stop(signals)
		ctx, cancel := context.WithCancelCause(ctx)
		turns, ended := relaySignals(ctx, signals, cancel)
		defer func() {
			cancel(nil)
			<-ended
		}()
		return a.serveSessions(ctx, id, workplace{environ: os.Environ()}, turns, a.stdin)
	})
}

// serveSessions runs the sessions of a member at its workplace. Lines typed at the terminal that
// stdin is are messages of the person; nil, or anything else, is not read.
func (a *app) serveSessions(ctx context.Context, id agent.Identity, at workplace, interrupt <-chan struct{}, stdin io.Reader) (err error) {
	s, err := a.enter(ctx, &id, at)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := s.close(); err == nil {
			err = cerr
		}
	}()
	done, err := s.enterWorktree(ctx)
	if err != nil {
		return err
	}
	defer done()
	id.Generation = at.getenv(team.EnvGen)
	stop := a.readPane(ctx, s, stdin)
	defer stop()
	p := program.Program{Tools: s.team.Env, Team: s.team, Member: s.member, Env: s.env, Token: at.getenv(team.EnvToken), Interrupt: interrupt}
	return p.Run(ctx, id)
}

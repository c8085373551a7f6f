package main

import (
	"context"
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
	var (
		id     agent.Identity
		mode   string
		bypass bool
	)
	cmd := &cobra.Command{
		Use:    "llm",
		Short:  "The built-in agent with a model (started by the supervisor)",
		Hidden: true,
		Args:   takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := completeIdentity(cmd, &id, mode, bypass); err != nil {
				return err
			}
			if at != nil {
				return a.serveSessions(cmd.Context(), id, *at, nil)
			}
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
			defer signal.Stop(signals)
			ctx, cancel := context.WithCancelCause(cmd.Context())
			turns, ended := relaySignals(ctx, signals, cancel)
			defer func() {
				cancel(nil)
				<-ended
			}()
			return a.serveSessions(ctx, id, workplace{environ: os.Environ()}, turns)
		},
	}
	identityFlags(cmd.Flags(), &id, &mode, &bypass)
	return cmd
}

// serveSessions runs the sessions of a member at its workplace.
func (a *app) serveSessions(ctx context.Context, id agent.Identity, at workplace, interrupt <-chan struct{}) (err error) {
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
	tools, err := a.tools()
	if err != nil {
		return err
	}
	id.Generation = at.getenv(team.EnvGen)
	p := program.Program{Tools: tools, Team: s.team, Member: s.member, Env: s.env, Token: at.getenv(team.EnvToken), Interrupt: interrupt}
	return p.Run(ctx, id)
}

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/internal/courier/acp"
)

func newACP(a *app) *cobra.Command {
	var (
		id     agent.Identity
		mode   string
		bypass bool
		in     agent.TalkIn
	)
	cmd := &cobra.Command{
		Use:    "acp -- COMMAND [ARG...]",
		Short:  "An agent that speaks the Agent Client Protocol (started by the supervisor)",
		Hidden: true,
		Args:   takes(1, -1, "COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := completeIdentity(cmd, &id, mode, bypass); err != nil {
				return err
			}
			return a.converse(cmd.Context(), id, in, args)
		},
	}
	f := cmd.Flags()
	identityFlags(f, &id, &mode, &bypass)
	f.StringVar(&in.Prompt, "prompt", "", "first prompt")
	f.StringVar(&in.Briefing, "briefing", "", "text before the first prompt")
	return cmd
}

// converse starts the agent and delivers its mail until the agent or the team ends.
func (a *app) converse(ctx context.Context, id agent.Identity, in agent.TalkIn, argv []string) (err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(ctx)
	turns, ended := relaySignals(ctx, signals, cancel)
	defer func() {
		cancel(nil)
		<-ended
	}()

	at := workplace{environ: os.Environ()}
	s, err := a.enter(ctx, &id, at)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := s.close(); err == nil {
			err = cerr
		}
	}()
	exe, err := executable()
	if err != nil {
		return err
	}
	in.Interrupt = turns
	p := acp.Program{Team: s.team, Caller: s.caller, Member: s.member, Env: s.env, Exe: exe, Err: a.out.stderr, Printable: printable}
	return p.Run(ctx, id, in, argv)
}

// relaySignals turns an interrupt into the end of the current turn, not of the agent; SIGTERM ends
// both. One interrupt is queued in turns, since it may arrive while the turn writes a receipt. The
// relay stops with ctx and closes ended.
func relaySignals(ctx context.Context, signals <-chan os.Signal, cancel context.CancelCauseFunc) (turns, ended <-chan struct{}) {
	interrupts, over := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case s := <-signals:
				if n, ok := s.(syscall.Signal); ok && n != syscall.SIGINT {
					cancel(signalError{n})
					continue
				}
				select {
				case interrupts <- struct{}{}:
				default: // one is queued already
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return interrupts, over
}

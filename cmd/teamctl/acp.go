package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/internal/courier/acp"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
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

// converse starts the agent and gives it its mail until it, or the team, is done.
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
	tools := acp.ToolServer{Name: "teamctl", Command: exe, Args: []string{"mcp"}, Env: map[string]string{}}
	for _, kv := range at.environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "TEAMCTL_") {
			tools.Env[name] = value
		}
	}
	conv, err := acp.Start(ctx, acp.In{
		Argv: argv, Env: at.environ, Dir: s.env.Dir, Tools: tools, Out: s.env.Out, Err: a.out.stderr, Permit: s.permit(),
	})
	if err != nil {
		return err
	}
	in.Interrupt, in.Quota = turns, &quota{station: s, at: at}
	err = agent.Talk(ctx, id, s.env, conv, in)
	if cerr := conv.Close(); err != nil {
		err = errors.Join(err, cerr)
	}
	return err
}

// relaySignals makes an interrupt the end of the turn under way, not of the agent;
// SIGTERM is the end of both. One interrupt waits in turns: it may come while the turn
// writes a receipt. ended is closed when the relay is over, which ctx ends.
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
				default: // one is there already
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return interrupts, over
}

// permit takes the agent's questions to the team's one queue.
func (s *station) permit() func(context.Context, team.Ask) (team.Reply, error) {
	return func(ctx context.Context, ask team.Ask) (team.Reply, error) {
		r := team.Reply{ID: ask.ID, For: ask.For}
		m, err := s.team.Ledger.MemberBySession(ctx, s.caller.Session)
		if err != nil {
			return r, err
		}
		if m.Spec.Mode == team.ModeBypass {
			r.Allow = true
			return r, nil
		}
		asked, err := s.request(ctx, ask)
		if err != nil {
			return r, err
		}
		a, err := s.team.AwaitApproval(ctx, asked.ID, 0)
		switch {
		case err == nil:
			with, err := s.team.GrantedWith(context.WithoutCancel(ctx), a)
			if err != nil {
				return r, err
			}
			if len(with.Input) > 0 { // the protocol has no place for it
				r.Feedback = supervisor.OtherInput(with.Input)
				return r, nil
			}
			r.Allow, r.Mode = true, with.Mode
		case team.IsCode(err, team.CodeDenied):
			r.Feedback = err.Error()
		case ctx.Err() != nil: // its turn was ended
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
			defer cancel()
			return r, errors.Join(err, s.team.Ledger.Withdraw(after, asked.ID, asked.Name, "its turn is over"))
		default:
			return r, err
		}
		return r, nil
	}
}

// withdrawWithin bounds what is left to do for a question that nobody asks any more.
const withdrawWithin = 2 * time.Second

// request puts one question into the queue: a plan that is ready as what it is.
func (s *station) request(ctx context.Context, ask team.Ask) (ledger.Approval, error) {
	if ask.For == team.WaitPlan {
		_, _ = fmt.Fprintf(s.env.Out, "%s: waits for approval of its plan\n", s.member.AgentID)
		return s.team.AskPlan(ctx, s.caller, tool.PlanIn{Content: ask.Plan, Path: ask.PlanPath})
	}
	in := tool.PermissionIn{ToolName: ask.Tool, ToolUseID: ask.ID, Description: ask.Description, Input: ask.Input, FixedInput: true}
	if in.ToolName == "" {
		in.ToolName = "tool"
	}
	if len(in.Input) > 0 && !json.Valid(in.Input) {
		in.Input = nil
	}
	_, _ = fmt.Fprintf(s.env.Out, "%s: waits for permission: %s\n", s.member.AgentID, printable(ask.Description))
	return s.team.AskPermission(ctx, s.caller, in)
}

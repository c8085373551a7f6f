package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/hook"
	"github.com/teamctl/teamctl/internal/fileid"
	"github.com/teamctl/teamctl/internal/hookcall"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// newHook is called by agent CLIs, not by people.
func newHook(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "hook CLI EVENT", Short: "Answer a hook of an agent's CLI (called by claude, codex and gemini)", Hidden: true,
		Args: takes(2, 2, "a CLI and one of its events"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !adapter.KnownHook(args[0], args[1]) {
				return usage(cmd, "%s has no hook %q", args[0], args[1]).
					WithHint("events of " + args[0] + ": " + strings.Join(adapter.HookEvents(args[0]), ", "))
			}
			// Unreadable input is treated like input that is not understood: it never makes a hook
			// fail.
			input, _ := io.ReadAll(io.LimitReader(a.stdin, hookcall.MaxInput))
			status := 0
			err := hook.Run(cmd.Context(), hook.In{
				CLI: args[0], Event: args[1], Input: input, Getenv: os.Getenv,
				Open: func(ctx context.Context, key string) (*tool.Team, error) {
					env, err := a.tools()
					if err != nil {
						return nil, err
					}
					return env.Open(ctx, key)
				},
				Tell: seenAt(os.Getenv(team.EnvNotify)),
				Write: func(r adapter.HookReply) error {
					status = r.Exit
					_, err := io.WriteString(a.out.stdout, r.Stdout)
					_, eerr := io.WriteString(a.out.stderr, r.Stderr)
					return errors.Join(err, eerr)
				},
			})
			if err != nil && os.Getenv(hookcall.EnvDebug) != "" {
				a.out.note("hook: %v", err) // on stdout the agent would read it
			}
			if status != 0 {
				return exitError(status)
			}
			return nil
		},
	}
}

// seenAt sends what a hook has seen to a supervisor's socket of notifications.
func seenAt(socket string) func(agent, generation string, o team.Observation) error {
	return func(agent, generation string, o team.Observation) error {
		data, err := json.Marshal(o)
		if err != nil {
			return err
		}
		return bundle.Send(socket, bundle.Event{Agent: agent, Generation: generation, Event: bundle.EventSeen, Data: data})
	}
}

// quietHook returns what runs hooks for which nothing waits, in the supervisor of the teamctl at exe.
// Once the file is another one, the hook of that one decides.
func quietHook(exe string, l team.Layout) func(context.Context, *ledger.Ledger, hookcall.Request) bool {
	program := fileid.At(exe)
	return func(ctx context.Context, led *ledger.Ledger, r hookcall.Request) bool {
		if r.Program != program || r.Notify != l.NotifySocket() {
			return false
		}
		environ := map[string]string{team.EnvAgentID: r.AgentID, team.EnvGen: r.Generation, team.EnvToken: r.Token}
		t := tool.Team{Env: &tool.Env{Home: l.Home}, Layout: l, Ledger: led}
		return hook.Quiet(ctx, hook.In{
			CLI: r.CLI, Event: r.Event, Input: r.Input, Getenv: func(name string) string { return environ[name] }, Tell: seenAt(r.Notify),
		}, &t, r.At)
	}
}

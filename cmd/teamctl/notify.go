package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newNotify(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify VERB",
		Short: "Manage notifications: ls, add, rm, test",
		Long: `Manage notification sinks, which notify you when something waits for your answer, when
a member gave up, when a task or a merge failed, when a limit or most of a budget is
reached, or when all work is done: a command (it gets JSON on its standard input), a
webhook (https, or http on this machine), a topic of an ntfy server, or the desktop.
Messages between members never leave the team.

Each event is reported once, when it begins. Five within ten seconds become one.`,
		Example: `  teamctl notify add desktop
  teamctl notify add 'command:cat >> ~/team.jsonl'
  teamctl notify add webhook:https://example.com/hook --kinds approval,dialog
  teamctl notify add ntfy:https://ntfy.sh/my-secret-topic --quiet 22:00-07:00
  teamctl notify test`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	change := func(cmd *cobra.Command, spec, already string, do func(*tool.Team, context.Context, tool.Caller, string) error) error {
		return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
			err := do(t, cmd.Context(), c, spec)
			if was := team.ReasonOf(err); was == "sink_exists" || was == "sink_not_found" {
				return a.sinks(cmd.Context(), t, already)
			}
			if err != nil {
				return err
			}
			return a.sinks(cmd.Context(), t, "")
		})
	}
	var kinds []string
	var quiet string
	add := &cobra.Command{
		Use: "add SINK", Short: "Add a notification sink", Args: takes(1, 1, "a sink"),
		Long: `Add a notification sink. --kinds limits it to some kinds of notifications:
approval, dialog, member, task, merge, mail, limit, budget, done, agent. In the hours of --quiet,
by the clock of this machine, it is told nothing, and not afterwards either.`,
		Example: `  teamctl notify add desktop
  teamctl notify add 'command:cat >> ~/team.jsonl'
  teamctl notify add ntfy:https://ntfy.sh/my-secret-topic --kinds approval,dialog,done --quiet 22:00-07:00`,
		ValidArgsFunction: first(words("desktop", "command:", "webhook:https://", "ntfy:https://")),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec := args[0]
			if quiet != "" {
				spec = "quiet=" + quiet + " " + spec
			}
			if len(kinds) > 0 {
				spec = "kinds=" + strings.Join(kinds, ",") + " " + spec
			}
			return change(cmd, spec, "already_there", (*tool.Team).SinkAdd)
		},
	}
	add.Flags().StringSliceVar(&kinds, "kinds", nil, "kinds of notifications it is for (default: all)")
	add.Flags().StringVar(&quiet, "quiet", "", "hours without notifications, as 22:00-07:00")
	a.complete(add, "kinds", words(tool.SinkKinds()...))
	cmd.AddCommand(
		&cobra.Command{
			Use: "ls", Short: "List the notification sinks", Example: "  teamctl notify ls\n  teamctl notify ls --json", Args: takes(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error { return a.sinks(cmd.Context(), t, "") })
			},
		},
		add,
		&cobra.Command{
			Use: "rm SINK", Short: "Remove a notification sink", Args: takes(1, 1, "a sink"), ValidArgsFunction: first(a.completeSinks()),
			Example: "  teamctl notify rm desktop\n  teamctl notify rm 'command:cat >> ~/team.jsonl'",
			RunE: func(cmd *cobra.Command, args []string) error {
				return change(cmd, args[0], "already_gone", (*tool.Team).SinkRemove)
			},
		},
		&cobra.Command{
			Use: "test", Short: "Send a test notification to every sink", Example: "  teamctl notify test\n  teamctl notify test --json", Args: takes(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
					told, err := t.SinkTest(cmd.Context(), c)
					if err != nil {
						return err
					}
					if !a.out.value(map[string]any{"told": told}) {
						a.out.line("told %d sinks", len(told))
					}
					return nil
				})
			},
		})
	return cmd
}

// sinks prints the sinks, with the outcome of a command that changed nothing.
func (a *app) sinks(ctx context.Context, t *tool.Team, outcome string) error {
	specs, err := t.Sinks(ctx)
	out := sinkList{specs, outcome}
	if err != nil || a.out.value(out) {
		return err
	}
	if outcome != "" {
		a.out.note("nothing to change: it is %s already", strings.TrimPrefix(outcome, "already_"))
	}
	if len(specs) == 0 {
		a.out.note("no sinks: nothing is sent outside of the team")
	}
	for _, s := range specs {
		a.out.line("%s", printable(s))
	}
	return nil
}

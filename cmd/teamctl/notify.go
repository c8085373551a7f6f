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
a member gave up, or when a task failed: a command (it gets JSON on its standard
input), a webhook (https, or http on this machine), or the desktop. Messages between
members never leave the team.`,
		Example: `  teamctl notify add desktop
  teamctl notify add 'command:cat >> ~/team.jsonl'
  teamctl notify add webhook:https://example.com/hook
  teamctl notify test`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	change := func(use, short, example, already string, offered completion, do func(*tool.Team, context.Context, tool.Caller, string) error) *cobra.Command {
		return &cobra.Command{
			Use: use + " SINK", Short: short, Example: example, Args: takes(1, 1, "a sink"), ValidArgsFunction: first(offered),
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
					err := do(t, cmd.Context(), c, args[0])
					if was := team.ReasonOf(err); was == "sink_exists" || was == "sink_not_found" {
						return a.sinks(cmd.Context(), t, already)
					}
					if err != nil {
						return err
					}
					return a.sinks(cmd.Context(), t, "")
				})
			},
		}
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "ls", Short: "List the notification sinks", Example: "  teamctl notify ls\n  teamctl notify ls --json", Args: takes(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error { return a.sinks(cmd.Context(), t, "") })
			},
		},
		change("add", "Add a notification sink", "  teamctl notify add desktop\n  teamctl notify add 'command:cat >> ~/team.jsonl'", "already_there",
			words("desktop", "command:", "webhook:https://"), (*tool.Team).SinkAdd),
		change("rm", "Remove a notification sink", "  teamctl notify rm desktop\n  teamctl notify rm 'command:cat >> ~/team.jsonl'", "already_gone", a.completeSinks(), (*tool.Team).SinkRemove),
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

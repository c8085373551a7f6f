package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/tool"
)

func newPause(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pause MEMBER...",
		Short: "Pause members; resume continues them",
		Long: `Freeze every process of a member by its control group. It keeps its pane, its worktree
and its tasks, and uses no CPU. It can still be stopped or killed. Without a control
group (see teamctl doctor) it is refused: a stop signal would have no effect, since
tmux continues stopped processes.`,
		Example:           "  teamctl pause builder\n  teamctl resume builder",
		Args:              takes(1, -1, "the name of a member"),
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.started(cmd.Context(), args, "paused", pausing(true))
		},
	}
}

func newResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "resume MEMBER...",
		Short:             "Resume paused members",
		Example:           "  teamctl resume builder\n  teamctl resume builder builder-2",
		Args:              takes(1, -1, "the name of a member"),
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.started(cmd.Context(), args, "resumed", pausing(false))
		},
	}
}

func pausing(on bool) func(*tool.Team, context.Context, tool.Caller, []string) ([]tool.Ruled, error) {
	return func(t *tool.Team, ctx context.Context, c tool.Caller, names []string) ([]tool.Ruled, error) {
		return t.Pause(ctx, c, names, on)
	}
}

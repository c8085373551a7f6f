package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newTaskClaim(a *app) *cobra.Command {
	var ifIdle bool
	cmd := &cobra.Command{
		Use:   "claim [ID]",
		Short: "Claim a task, or the next ready one",
		Long: `Claim a task for yourself. Without an id this is the oldest ready task of the highest
priority; if none is ready the command says so, and the exit status is 0.`,
		Example:           "  teamctl task claim\n  teamctl task claim 3",
		Args:              takes(0, 1, "the id of one task"),
		ValidArgsFunction: first(a.completeTasks(ledger.TaskFilter{Status: team.TaskPending})),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(tm *tool.Team, c tool.Caller) error {
				id := ""
				if len(args) == 1 {
					id = taskID(args[0])
				}
				claim := tm.TaskClaim
				if ifIdle {
					claim = tm.TaskClaimIdle
				}
				t, err := claim(cmd.Context(), c, id)
				if err != nil {
					return err
				}
				if a.out.value(map[string]any{"task": t}) {
					return nil
				}
				if t == nil {
					a.out.note("no task is ready")
					return nil
				}
				a.out.line("claimed %s: %s", t.ID, view.Clean(t.Subject))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&ifIdle, "if-idle", false, "only if you hold no other task")
	return cmd
}

// settling is a command that changes one task, for manyTasks. A state that the task already has is
// not an error.
func (a *app) settling(verb string,
	do func(ctx context.Context, t *tool.Team, c tool.Caller, id string) (tool.TaskDone, error)) func(context.Context, *tool.Team, tool.Caller, string) (any, error) {
	return func(ctx context.Context, tm *tool.Team, c tool.Caller, id string) (any, error) {
		t, err := do(ctx, tm, c, id)
		if err != nil {
			return nil, err
		}
		if !a.out.json && a.out.format != formatName {
			a.settled(verb, t)
		}
		return t, nil
	}
}

func newTaskComplete(a *app) *cobra.Command {
	var (
		res     ledger.Result
		attempt int
	)
	cmd := &cobra.Command{
		Use:     "complete ID...",
		Short:   "Report tasks as completed",
		Example: "  teamctl task complete 3 --summary \"all green\" --commit $(git rev-parse HEAD)\n  teamctl task complete 3",
	}
	cmd.Flags().StringVar(&res.Summary, "summary", "", "result of the task")
	cmd.Flags().StringVar(&res.Commit, "commit", "", "commit with the work")
	cmd.Flags().StringSliceVar(&res.Files, "files", nil, "changed files")
	cmd.Flags().IntVar(&attempt, "attempt", 0, "only if this is still the current attempt")
	return a.manyTasks(cmd, ledger.TaskFilter{OpenOnly: true}, nil, a.settling("completed",
		func(ctx context.Context, t *tool.Team, c tool.Caller, id string) (tool.TaskDone, error) {
			return t.TaskComplete(ctx, c, id, attempt, res)
		}))
}

func newTaskFail(a *app) *cobra.Command {
	var (
		res     ledger.Result
		attempt int
	)
	cmd := &cobra.Command{
		Use:     "fail ID...",
		Short:   "Report tasks as failed",
		Example: "  teamctl task fail 3 --error \"the build needs a newer compiler\"\n  teamctl task fail 3",
	}
	cmd.Flags().StringVar(&res.Error, "error", "", "reason of the failure")
	cmd.Flags().IntVar(&res.ExitCode, "exit-code", 0, "exit status of the command that was run")
	cmd.Flags().IntVar(&attempt, "attempt", 0, "only if this is still the current attempt")
	return a.manyTasks(cmd, ledger.TaskFilter{OpenOnly: true}, nil, a.settling("failed",
		func(ctx context.Context, t *tool.Team, c tool.Caller, id string) (tool.TaskDone, error) {
			return t.TaskFail(ctx, c, id, attempt, res)
		}))
}

func newTaskHistory(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "history ID",
		Short:             "Show the history of a task",
		Example:           "  teamctl task history 3\n  teamctl task history 3 --json",
		Args:              takes(1, 1, "the id of a task"),
		ValidArgsFunction: first(a.completeTasks(ledger.TaskFilter{Newest: true})),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(tm *tool.Team, _ tool.Caller) error {
				events, err := tm.History(cmd.Context(), taskID(args[0]))
				if err != nil {
					return err
				}
				if a.out.value(map[string]any{"events": events}) {
					return nil
				}
				for _, e := range events {
					a.out.line("%s", a.eventLine(e))
				}
				return nil
			})
		},
	}
}

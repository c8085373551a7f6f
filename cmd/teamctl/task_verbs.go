package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tui"
)

func newTaskClaim(a *app) *cobra.Command {
	var ifIdle bool
	cmd := &cobra.Command{
		Use:   "claim [ID]",
		Short: "Claim a task, or the next ready one",
		Long: `Claim a task for yourself, so that nobody else takes it. Without an id it is the
oldest ready task of the highest priority; if none is ready that is told, and the
exit status is 0.`,
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
				a.out.line("claimed %s: %s", t.ID, tui.Clean(t.Subject))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&ifIdle, "if-idle", false, "only if you hold no other task")
	return cmd
}

// settle is a verb that changes one task.
func (a *app) settle(cmd *cobra.Command, args []string, verb string,
	do func(ctx context.Context, tm *tool.Team, c tool.Caller, id string) (ledger.Task, error)) error {
	return a.withTeam(cmd.Context(), func(tm *tool.Team, c tool.Caller) error {
		done, err := do(cmd.Context(), tm, c, taskID(args[0]))
		t := settledTask{Task: done}
		if err != nil {
			attempt := 0
			if f := cmd.Flags().Lookup("attempt"); f != nil {
				attempt, _ = cmd.Flags().GetInt("attempt")
			}
			if t, err = alreadySettled(cmd.Context(), tm, c, taskID(args[0]), verb, attempt, err); err != nil {
				return err
			}
		}
		if a.out.value(t) {
			return nil
		}
		if t.Outcome != "" {
			a.out.line("%s is %s already: %s", t.ID, t.Status, tui.Clean(t.Subject))
			return nil
		}
		if t.Verification != 0 {
			a.out.line("%s: handed in, and being verified: %s", t.ID, tui.Clean(t.Verify))
			a.out.hint("nothing is to be done: its owner is told if that fails")
			return nil
		}
		if t.Review != 0 {
			a.out.line("%s: done, and waits for a review (approval %d)", t.ID, t.Review)
			return nil
		}
		a.out.line("%s %s: %s", verb, t.ID, tui.Clean(t.Subject))
		return nil
	})
}

func newTaskComplete(a *app) *cobra.Command {
	var (
		res     ledger.Result
		attempt int
	)
	cmd := &cobra.Command{
		Use:               "complete ID",
		Short:             "Report a task as completed",
		Example:           "  teamctl task complete 3 --summary \"all green\" --commit $(git rev-parse HEAD)",
		Args:              takes(1, 1, "the id of a task"),
		ValidArgsFunction: first(a.completeTasks(ledger.TaskFilter{OpenOnly: true})),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settle(cmd, args, "completed", func(ctx context.Context, tm *tool.Team, c tool.Caller, id string) (ledger.Task, error) {
				return tm.TaskComplete(ctx, c, id, attempt, res)
			})
		},
	}
	cmd.Flags().StringVar(&res.Summary, "summary", "", "what was done")
	cmd.Flags().StringVar(&res.Commit, "commit", "", "commit that has the work")
	cmd.Flags().StringSliceVar(&res.Files, "files", nil, "files that were changed")
	cmd.Flags().IntVar(&attempt, "attempt", 0, "only if this is still the current attempt")
	return cmd
}

func newTaskFail(a *app) *cobra.Command {
	var (
		res     ledger.Result
		attempt int
	)
	cmd := &cobra.Command{
		Use:               "fail ID",
		Short:             "Report a task as failed",
		Example:           "  teamctl task fail 3 --error \"the build needs a newer compiler\"",
		Args:              takes(1, 1, "the id of a task"),
		ValidArgsFunction: first(a.completeTasks(ledger.TaskFilter{OpenOnly: true})),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settle(cmd, args, "failed", func(ctx context.Context, tm *tool.Team, c tool.Caller, id string) (ledger.Task, error) {
				return tm.TaskFail(ctx, c, id, attempt, res)
			})
		},
	}
	cmd.Flags().StringVar(&res.Error, "error", "", "what went wrong")
	cmd.Flags().IntVar(&res.ExitCode, "exit-code", 0, "exit status of what was run")
	cmd.Flags().IntVar(&attempt, "attempt", 0, "only if this is still the current attempt")
	return cmd
}

func newTaskRelease(a *app) *cobra.Command {
	var attempt int
	cmd := &cobra.Command{
		Use:               "release ID",
		Short:             "Put a claimed task back on the board",
		Example:           "  teamctl task release 3",
		Args:              takes(1, 1, "the id of a task"),
		ValidArgsFunction: first(a.completeTasks(ledger.TaskFilter{OpenOnly: true})),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settle(cmd, args, "released", func(ctx context.Context, tm *tool.Team, c tool.Caller, id string) (ledger.Task, error) {
				return tm.TaskRelease(ctx, c, id, attempt)
			})
		},
	}
	cmd.Flags().IntVar(&attempt, "attempt", 0, "only if this is still the current attempt")
	return cmd
}

func newTaskRetry(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "retry ID",
		Short:             "Put a failed task back on the board",
		Example:           "  teamctl task retry 3",
		Args:              takes(1, 1, "the id of a task"),
		ValidArgsFunction: first(a.completeTasks(ledger.TaskFilter{Status: team.TaskFailed})),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settle(cmd, args, "back on the board:", func(ctx context.Context, tm *tool.Team, c tool.Caller, id string) (ledger.Task, error) {
				return tm.TaskRetry(ctx, c, id)
			})
		},
	}
}

func newTaskHistory(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "history ID",
		Short:             "Show what happened to a task, and who did it",
		Example:           "  teamctl task history 3",
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

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// taskSet is a flag that selects tasks by their state instead of by id.
type taskSet struct {
	flag, help, none string
	filter           ledger.TaskFilter
	fits             func(ledger.Task) bool // nil accepts all that the filter returns
}

var (
	failedTasks    = taskSet{"failed", "every failed task", "no task has failed", ledger.TaskFilter{Status: team.TaskFailed}, nil}
	completedTasks = taskSet{"completed", "every completed task", "no task is completed", ledger.TaskFilter{Status: team.TaskCompleted}, nil}
	openTasks      = taskSet{"all", "every task that is not done", "every task is done", ledger.TaskFilter{OpenOnly: true}, nil}
	claimedTasks   = taskSet{"all", "every claimed task", "no task is claimed", ledger.TaskFilter{OpenOnly: true}, held}
	restingTasks   = taskSet{"all", "every task that is not in progress", "there is no task that nobody works on", ledger.TaskFilter{}, func(t ledger.Task) bool { return !held(t) }}
)

func held(t ledger.Task) bool { return t.Status == team.TaskClaimed || t.Status == team.TaskInProgress }

// manyTasks makes cmd accept several ids or one of the sets, and applies run to each task. The
// first failure is the command's error; the other tasks are still processed.
func (a *app) manyTasks(cmd *cobra.Command, offered ledger.TaskFilter, sets []taskSet,
	do func(ctx context.Context, t *tool.Team, c tool.Caller, id string) (any, error)) *cobra.Command {
	chosen := make([]bool, len(sets))
	var flags []string
	for i, s := range sets {
		cmd.Flags().BoolVar(&chosen[i], s.flag, false, s.help)
		flags = append(flags, "--"+s.flag)
	}
	set := func() (taskSet, bool) {
		for i, s := range sets {
			if chosen[i] {
				return s, true
			}
		}
		return taskSet{}, false
	}
	cmd.ValidArgsFunction = a.completeTasks(offered)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		n := 0
		for _, on := range chosen {
			if on {
				n++
			}
		}
		switch {
		case n > 1:
			return usage(cmd, "%s exclude each other", strings.Join(flags, " and "))
		case n == 1 && len(args) > 0:
			return usage(cmd, "ids and %s exclude each other", strings.Join(flags, " or "))
		case n == 1:
			return nil
		case len(flags) > 0:
			return takes(1, -1, "the id of a task, or "+strings.Join(flags, " or "))(cmd, args)
		}
		return takes(1, -1, "the id of a task")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
			ids := args
			s, bySet := set()
			if bySet {
				list, err := t.Ledger.Tasks(ctx, s.filter)
				if err != nil {
					return err
				}
				for _, x := range list {
					if s.fits == nil || s.fits(x) {
						ids = append(ids, x.ID)
					}
				}
				if len(ids) == 0 && !a.out.json {
					a.out.note("%s", s.none)
				}
			}
			var first error
			results := []any{}
			for _, id := range ids {
				res, err := do(ctx, t, c, taskID(id))
				switch {
				case err == nil:
					results = append(results, res)
				case len(ids) == 1:
					return err
				default:
					if first == nil {
						first = err
					}
					a.out.note("%s: %s", printable(taskID(id)), printable(err.Error()))
				}
			}
			switch {
			case len(ids) == 1 && !bySet:
				a.out.value(results[0])
			case first == nil || len(results) > 0:
				a.out.value(map[string]any{"tasks": results})
			}
			if first != nil && a.out.json && len(results) > 0 {
				return team.Errorf(team.CodeOf(first), "%w", errSaid)
			}
			return first
		})
	}
	return cmd
}

// settled reports the state of a task after a command, and whether it had that state before.
func (a *app) settled(verb string, t tool.TaskDone) {
	switch {
	case t.Outcome != "":
		a.out.line("%s is %s already: %s", t.ID, t.Status, view.Clean(t.Subject))
	case t.Verification != 0:
		a.out.line("%s: handed in, and being verified: %s", t.ID, view.Clean(t.Verify))
		a.out.note("nothing else to do: the owner is told of a failure")
	case t.Review != 0:
		a.out.line("%s: done, and waits for a review (approval %d)", t.ID, t.Review)
	default:
		a.out.line("%s %s: %s", verb, t.ID, view.Clean(t.Subject))
	}
}

func newTaskRelease(a *app) *cobra.Command {
	var attempt int
	cmd := &cobra.Command{
		Use:   "release ID...",
		Short: "Release claimed tasks, so that others can claim them",
		Long: `Release claimed tasks. For five seconds no member claims such a task by itself, so
that it can be edited, assigned or removed. A member can claim it by id at once,
except the one that had it.`,
		Example: "  teamctl task release 3\n  teamctl task release 3 && teamctl task rm 3",
	}
	cmd.Flags().IntVar(&attempt, "attempt", 0, "only if this is still the current attempt")
	return a.manyTasks(cmd, ledger.TaskFilter{OpenOnly: true}, []taskSet{claimedTasks}, a.settling("released",
		func(ctx context.Context, t *tool.Team, c tool.Caller, id string) (tool.TaskDone, error) {
			return t.TaskRelease(ctx, c, id, attempt)
		}))
}

func newTaskRetry(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "retry ID...",
		Short:   "Retry failed tasks",
		Long:    "Retry failed tasks: they are pending again, with all their retries.",
		Example: "  teamctl task retry 3\n  teamctl task retry --failed",
	}
	return a.manyTasks(cmd, ledger.TaskFilter{Status: team.TaskFailed}, []taskSet{failedTasks}, a.settling("ready again:",
		func(ctx context.Context, t *tool.Team, c tool.Caller, id string) (tool.TaskDone, error) {
			return t.TaskRetry(ctx, c, id)
		}))
}

func newTaskCancel(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ID...",
		Short: "Cancel open tasks, including those in progress",
		Long: `Cancel tasks that are not done. A member working on one loses it: its command is
ended, and its reports are refused; its changes stay in its worktree. The task counts
as failed, so its dependents wait until it is retried or removed.`,
		Example: "  teamctl task cancel 3 --reason \"not needed\"\n  teamctl task cancel --all",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, recorded with the task")
	return a.manyTasks(cmd, ledger.TaskFilter{OpenOnly: true}, []taskSet{openTasks}, a.settling("canceled",
		func(ctx context.Context, t *tool.Team, c tool.Caller, id string) (tool.TaskDone, error) {
			return t.TaskCancel(ctx, c, id, reason)
		}))
}

func newTaskRm(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rm ID...",
		Short: "Remove tasks that are not in progress",
		Long: `Remove tasks that are not in progress; cancel them first if they are. Their dependents
no longer wait for them; ids are never reused, and the history stays.`,
		Example: "  teamctl task rm 3\n  teamctl task rm --failed",
	}
	return a.manyTasks(cmd, ledger.TaskFilter{Newest: true}, []taskSet{failedTasks, completedTasks, restingTasks},
		func(ctx context.Context, t *tool.Team, c tool.Caller, id string) (any, error) {
			done, err := t.TaskDelete(ctx, c, id)
			if err != nil {
				return nil, err
			}
			if !a.out.json && a.out.format != formatName {
				if done.Outcome != "" {
					a.out.line("%s is removed already", id)
				} else {
					a.out.line("removed %s", id)
				}
				for _, r := range done.Ready {
					a.out.note("%s is ready now", r)
				}
			}
			return done, nil
		})
}

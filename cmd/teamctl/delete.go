package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newDelete(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "delete [TEAM]",
		Short: "Delete a team and its worktrees, keeping unmerged work",
		Long: `Delete a team: its directory, its worktrees and, if nothing is lost, its branches. It
refuses while members run, and while a worktree has work that exists nowhere else.
With --force members are ended first and such work is saved as a snapshot in the
repository, which is reported. A branch with commits of its own is always kept.

An interrupt before the first worktree is removed deletes nothing; with --force
members may have been ended, which is reported. A later one does not stop the
deletion, and the exit status is that of the deletion.`,
		Example: `  teamctl shutdown && teamctl delete
  teamctl delete demo --force`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && a.team != "" && a.team != args[0] {
				return usage(cmd, "two teams are named: %q and --team %q", args[0], a.team)
			}
			return takes(0, 1, "the name of one team")(cmd, args)
		},
		ValidArgsFunction: first(a.completeTeams),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if args[0] == "" { // an empty name would mean the only team
					return usage(cmd, "delete needs the name of a team, not an empty one")
				}
				a.team = args[0]
			}
			env, key, c, err := a.target(cmd.Context())
			if err != nil {
				return a.deletedBefore(err)
			}
			return a.remove(cmd.Context(), env, key, c, force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "end members first, and save unsaved work as a snapshot")
	return cmd
}

// deletedBefore reports the deletion of a team that was deleted before, instead of the error that it
// is not there.
func (a *app) deletedBefore(err error) error {
	if team.ReasonOf(err) != team.ReasonTeamNotFound {
		return err
	}
	env, eerr := a.tools()
	if eerr != nil {
		return err
	}
	key, was := env.WasDeleted(a.team)
	if was && !a.out.value(tool.DeletedBefore(key)) {
		a.out.line("team %s is deleted already", key)
	}
	if was {
		return nil
	}
	return err
}

// target returns the team that the command works on, already closed, and the caller.
func (a *app) target(ctx context.Context) (*tool.Env, string, tool.Caller, error) {
	t, c, err := a.open(ctx)
	if err != nil {
		return nil, "", c, err
	}
	return t.Env, t.Layout.Key, c, t.Close()
}

// remove deletes the team and reports what was kept.
func (a *app) remove(ctx context.Context, env *tool.Env, key string, c tool.Caller, force bool) error {
	late := sync.OnceFunc(func() {
		a.out.note("the deletion of %s has begun and will be completed; interrupt again to stop it half done", key)
	})
	res, err := env.Delete(ctx, c, key, tool.DeleteIn{Force: force, Late: late})
	if a.past = res.Begun(); a.past && ctx.Err() != nil {
		late() // waits if it is being reported
	}
	if err != nil {
		a.rescued(res, a.out.note)
		return errors.Join(err, a.out.failure())
	}
	if a.out.value(res) {
		return nil
	}
	if res.Outcome != "" {
		a.out.line("team %s is deleted already", key)
		return nil
	}
	a.out.line("deleted team %s", key)
	a.rescued(res, a.out.line)
	for _, k := range res.Kept {
		a.out.line("kept branch %s at %.10s, the work of %s", k.Branch, k.Head, k.Member)
	}
	if len(res.Kept) > 0 {
		a.out.hint("git diff HEAD...%s", res.Kept[0].Branch)
		a.out.hint("git merge %s", res.Kept[0].Branch)
	}
	return nil
}

// rescued lists what a deletion has saved, with the commands that restore it.
func (a *app) rescued(res tool.TeamDeleteOut, line func(format string, args ...any)) {
	if a.out.json { // the result has it, and a failure has it in the error
		return
	}
	for _, n := range res.Notes {
		a.out.note("%s", n)
	}
	for i, r := range res.Rescued {
		line("saved unsaved work as %s", r)
		line("  to get it back: %s", res.Restore[i])
	}
}

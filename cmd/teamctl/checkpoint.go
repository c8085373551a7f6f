package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/tool"
)

func newCheckpoint(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "checkpoint VERB",
		Short: "Manage checkpoints of worktrees: ls, take, restore",
		Long: `Manage checkpoints, saved states of members' worktrees. One is taken when a worker
becomes idle or completes a task and its worktree has changed, below
refs/teamctl/checkpoint/TEAM/MEMBER/; the newest twenty of each member stay. Taking
one touches neither the index nor the files.`,
		Example: `  teamctl checkpoint ls builder
  teamctl checkpoint take
  teamctl stop builder && teamctl checkpoint restore builder`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	cmd.AddCommand(newCheckpointLs(a), newCheckpointTake(a), newCheckpointRestore(a))
	return cmd
}

func newCheckpointLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "ls [MEMBER]",
		Short:             "List checkpoints, newest first",
		Example:           "  teamctl checkpoint ls builder\n  teamctl checkpoint ls --json",
		Args:              takes(0, 1, "the name of one member"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				agent := ""
				if len(args) == 1 {
					agent = args[0]
				}
				list, err := t.Checkpoints(cmd.Context(), agent)
				if err != nil {
					return err
				}
				return a.savedList("checkpoints", list, "there is no checkpoint yet")
			})
		},
	}
}

func newCheckpointTake(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "take [MEMBER...]",
		Short:             "Save the state of members' worktrees now",
		Example:           "  teamctl checkpoint take\n  teamctl checkpoint take builder",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				taken, err := t.CheckpointTake(cmd.Context(), c, args, "a checkpoint by hand")
				if err != nil {
					return err
				}
				if taken == nil {
					taken = []tool.CheckpointTaken{}
				}
				if a.out.value(map[string]any{"checkpoints": taken}) {
					return nil
				}
				if len(taken) == 0 {
					a.out.note("no member has a worktree of its own")
				}
				for _, k := range taken {
					if k.New {
						a.out.line("%s  %s", k.Agent, k.Ref)
					} else {
						a.out.line("%s  unchanged since %s", k.Agent, k.Ref)
					}
				}
				return nil
			})
		},
	}
}

func newCheckpointRestore(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restore MEMBER [REF]",
		Short: "Restore a member's worktree to a checkpoint",
		Long: `Restore the worktree of a member that is not running to a checkpoint, by default the
newest: its branch, staged changes, and all files. The current state is rescued first.`,
		Example:           "  teamctl stop builder\n  teamctl checkpoint restore builder\n  teamctl start builder",
		Args:              takes(1, 2, "a member, and the ref of a checkpoint"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				ref := ""
				if len(args) == 2 {
					ref = args[1]
				}
				res, err := t.CheckpointRestore(cmd.Context(), c, args[0], ref)
				if err != nil {
					return err
				}
				return a.restored(res)
			})
		},
	}
}

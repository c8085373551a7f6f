package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/tool"
)

func newRename(a *app) *cobra.Command {
	var restart bool
	cmd := &cobra.Command{
		Use:   "rename MEMBER NAME",
		Short: "Rename a member",
		Long: `Rename a member. It keeps its unread mail, tasks, log, conversation, settings, budget
and saved states. Its worktree and branch keep their names (see ps and worktree ls).
Messages, events and the history of tasks show the name of their time.

The processes of a member know its name, so a running one is refused, unless --restart
is given: that stops it as stop does, renames it, and starts it again in its
conversation. If that is cut short the member may be stopped, under one of the two
names; the same command does the rest. The former name still leads to the member, in commands and for mail, until another member has it. If the
member comes from a team file, rename it in the file too; otherwise the next up adds
a new member with the former name.`,
		Example:           "  teamctl rename builder backend\n  teamctl rename --restart builder backend",
		Args:              takes(2, 2, "the name of a member and its new name"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				rename := t.Rename
				if restart {
					rename = t.RenameRestart
				}
				out, err := rename(cmd.Context(), c, args[0], args[1])
				if err != nil || a.out.value(out) {
					return err
				}
				if out.Status == "already_renamed" {
					a.out.line("%s has that name already", out.Name)
				} else {
					a.out.line("renamed %s to %s", printable(out.Was), out.Name)
				}
				if out.Started {
					a.out.line("started %s", out.Name)
				}
				if out.Status == "already_renamed" {
					return nil
				}
				if out.Branch != "" {
					a.out.line("its work is still on %s in %s", out.Branch, printable(out.Worktree))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&restart, "restart", false, "stop the member first, and start it again in the end")
	return cmd
}

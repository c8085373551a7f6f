package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/tool"
)

func newPane(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pane VERB",
		Short:   "Manage members' panes in tmux: hide, unhide",
		Long:    "Manage the panes of members in tmux. Hiding one ends nothing: the member goes on, and\nits screen is there when it is shown again.",
		Example: "  teamctl pane hide builder\n  teamctl pane unhide builder",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	verb := func(name, short string, hidden bool) {
		cmd.AddCommand(&cobra.Command{
			Use:               name + " MEMBER",
			Short:             short,
			Example:           "  teamctl pane " + name + " builder\n  teamctl pane " + name + " builder --json",
			Args:              takes(1, 1, "the name of a member"),
			ValidArgsFunction: first(a.completeMembers(false)),
			RunE:              func(cmd *cobra.Command, args []string) error { return a.hide(cmd.Context(), args[0], hidden) },
		})
	}
	verb("hide", "Hide a member's pane; the member keeps running", true)
	verb("unhide", "Show a hidden pane again", false)
	return cmd
}

func (a *app) hide(ctx context.Context, name string, hidden bool) error {
	return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
		if err := memberNames(ctx, t, []string{name}); err != nil {
			return err
		}
		was, err := isHidden(ctx, t, name)
		if err != nil {
			return err
		}
		if err := t.Hide(ctx, name, hidden); err != nil {
			return err
		}
		out := hiddenMember{name, hidden, "shown"}
		if hidden {
			out.Outcome = "hidden"
		}
		already := ""
		if was == hidden {
			out.Outcome, already = "already_"+out.Outcome, " already"
		}
		if !a.out.value(out) {
			a.out.line("%s is %s%s", name, strings.TrimPrefix(out.Outcome, "already_"), already)
		}
		return nil
	})
}

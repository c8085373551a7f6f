package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/tool"
)

func newHooks(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hooks VERB",
		Short: "Manage hooks, commands that run on events: ls, allow",
		Long: `Manage hooks: commands of your own that run before a task is created or completed,
and when a member is idle, has exited or has taken a message. They are set in
config.yaml of teamctl's home directory, or in a team file. Exit status 2 blocks, with what the
command writes to standard error as feedback; docs/hooks.md has the rest.`,
		Example: "  teamctl hooks ls\n  teamctl hooks allow",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "ls", Short: "List the hooks of the team", Example: "  teamctl hooks ls\n  teamctl hooks ls --json", Args: takes(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
					out, err := t.Hooks(cmd.Context())
					if err == nil {
						a.hooks(out)
					}
					return err
				})
			},
		},
		&cobra.Command{
			Use: "allow", Short: "Allow the hooks that the repository brought",
			Long: `Allow the hooks of the team's file although they came with the repository. The consent
applies on this machine, to exactly these commands and the files of the repository
that they name: when one of them changes, the hooks need your consent again.`,
			Example: "  teamctl hooks ls\n  teamctl hooks allow", Args: takes(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
					out, err := t.HooksAllow(cmd.Context(), c)
					if err == nil {
						a.hooks(out)
					}
					return err
				})
			},
		})
	return cmd
}

func (a *app) hooks(out tool.HooksOut) {
	if a.out.value(out) {
		return
	}
	if len(out.Hooks) == 0 {
		a.out.note("there are no hooks: docs/hooks.md shows how to write one")
		return
	}
	var rows [][]string
	for _, h := range out.Hooks {
		rows = append(rows, []string{h.Hook, h.From, yes(h.Runs), h.Timeout, view.Clean(h.Command)})
	}
	a.out.table([]string{"HOOK", "FROM", "RUNS", "TIMEOUT", "COMMAND"}, rows, false)
	if !out.Allowed {
		a.out.note("those of the team file came with the repository and wait for your consent")
		for _, f := range out.Files {
			a.out.note("  they name %s", printable(f))
		}
		a.out.hint("when you have read them: teamctl hooks allow")
	}
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/tool"
)

func newRelocate(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "relocate [TEAM...]",
		Short: "Record that a team's directory was moved here",
		Long: `Record that the directory of a team, or the whole home directory, was moved to its
current place. Until then the team is read-only, because it may be a copy, and
commands on a copy would end the members of the original.

The worktrees are registered with git again, and running members are restarted with
the new paths. Without a name, relocate every team of the home directory that was
moved. A copy is refused while its original exists.`,
		Example: `  teamctl relocate
  teamctl relocate demo`,
		ValidArgsFunction: first(a.completeTeams),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := a.tools()
			if err != nil {
				return err
			}
			keys, err := a.relocatable(cmd, env, args)
			if err != nil {
				return err
			}
			list := []tool.Relocated{}
			for _, k := range keys {
				r, err := env.Relocate(cmd.Context(), a.outsider(), k)
				if err != nil {
					return err
				}
				list = append(list, r)
			}
			if a.out.value(map[string]any{"teams": list}) {
				return nil
			}
			a.relocated(list)
			return nil
		},
	}
}

// relocatable returns the teams that the command applies to.
func (a *app) relocatable(cmd *cobra.Command, env *tool.Env, args []string) ([]string, error) {
	if len(args) == 0 && a.team == "" {
		return env.Moved(cmd.Context())
	}
	if len(args) == 0 {
		args = []string{a.team}
	}
	keys := make([]string, len(args))
	for i, name := range args {
		key, err := env.Resolve(cmd.Context(), name)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return keys, nil
}

func (a *app) relocated(list []tool.Relocated) {
	if len(list) == 0 {
		a.out.note("no team of this home was moved")
	}
	for _, r := range list {
		if r.Status == "already_here" {
			a.out.line("team %s is at %s already", r.Team, r.Path)
			continue
		}
		a.out.line("team %s: %s -> %s", r.Team, r.From, r.Path)
		for _, w := range r.Worktrees {
			a.out.line("  worktree %s", w)
		}
		for _, m := range r.Restarted {
			a.out.line("  started %s again", m)
		}
	}
}

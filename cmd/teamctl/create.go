package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/tool"
)

func newCreate(a *app) *cobra.Command {
	var in tool.TeamCreateIn
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a team",
		Long: `Create a team: its directory, its task ledger and you as its lead. Nothing is
started. With --repo every member gets a git worktree and a branch of its own;
your own checkout is not touched.`,
		Example: `  teamctl create demo --repo .
  teamctl create demo --repo ~/src/app --base main --description "port to v2"
  teamctl create demo --unique       # demo-2 if demo is taken`,
		Args: takes(1, 1, "the name of the team"),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := a.tools()
			if err != nil {
				return err
			}
			in.TeamName = args[0]
			if in.WorktreeDir, err = absolute(in.WorktreeDir); err != nil {
				return err
			}
			res, err := env.TeamCreate(cmd.Context(), a.outsider(), in)
			if err != nil {
				return err
			}
			if a.out.value(res) {
				return nil
			}
			a.out.line("created team %s in %s", res.TeamName, env.Home.Team(res.TeamName).Dir)
			a.out.hint("teamctl spawn NAME --team %s", res.TeamName)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Repo, "repo", "", "git repository to work on (default: none, and no worktrees)")
	f.StringVar(&in.Base, "base", "", "revision that branches start from (default HEAD at spawn)")
	f.StringVar(&in.Description, "description", "", "what the team is for")
	f.StringVar(&in.WorktreeDir, "worktree-root", "", "directory for the worktrees (default in the team's directory)")
	f.StringVar(&in.AgentType, "type", "", "agent type of the lead")
	f.BoolVar(&in.Unique, "unique", false, "take NAME-2, NAME-3, ... if the name is taken")
	return cmd
}

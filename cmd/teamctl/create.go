package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newCreate(a *app) *cobra.Command {
	var in tool.TeamCreateIn
	var repos []string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a team, on a git repository with --repo",
		Long: `Create a team: its directory, its task ledger and you as its lead. Nothing is
started. With --repo every member gets a git worktree and a branch of its own;
your own checkout is not touched.`,
		Example: `  teamctl create demo --repo .
  teamctl create demo --repo ~/src/app --base main --description "port to v2"
  teamctl create demo --repo . --repo api=../api --repo web=../web
  teamctl create demo --unique`,
		Args: takes(1, 1, "the name of the team"),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := a.tools()
			if err != nil {
				return err
			}
			in.TeamName = args[0]
			if err := repoFlags(cmd, repos, &in); err != nil {
				return err
			}
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
			a.out.hint("teamctl spawn builder --team %s", res.TeamName)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&repos, "repo", nil, "git repository to work on (default: none, and no worktrees); further ones as NAME=PATH, for spawn --repo NAME")
	f.StringVar(&in.Base, "base", "", "revision that branches start from (default HEAD at spawn)")
	f.StringVar(&in.Description, "description", "", "what the team is for")
	f.StringVar(&in.WorktreeDir, "worktree-root", "", "directory for the worktrees (default in the team's directory)")
	f.StringVar(&in.AgentType, "type", "", "agent type of the lead")
	f.BoolVar(&in.Unique, "unique", false, "take NAME-2, NAME-3, ... if the name is taken")
	return cmd
}

// repoFlags reads --repo PATH and --repo NAME=PATH. In a path such as ./a=b the part before the
// first "=" is not a name.
func repoFlags(cmd *cobra.Command, flags []string, in *tool.TeamCreateIn) error {
	for _, v := range flags {
		name, path, named := strings.Cut(v, "=")
		if named && team.IsKey(name) {
			if path == "" {
				return usage(cmd, "--repo %s= has no path", name)
			}
			if in.Repos == nil {
				in.Repos = map[string]string{}
			}
			if _, twice := in.Repos[name]; twice {
				return usage(cmd, "--repo %s is given twice", name)
			}
			in.Repos[name] = path
			continue
		}
		if in.Repo != "" {
			return usage(cmd, "one --repo has no name, found %q and %q", in.Repo, v).WithHint("further ones: --repo NAME=PATH")
		}
		in.Repo = v
	}
	return nil
}

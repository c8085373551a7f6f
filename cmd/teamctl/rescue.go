package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newRescue(a *app) *cobra.Command {
	var repo string
	cmd := &cobra.Command{
		Use:   "rescue VERB",
		Short: "Manage rescued work: ls, show, restore, drop",
		Long: `Manage saved work. Before a worktree with work in it is removed by force, or an
interrupted operation of git is undone, the complete state (staged, changed and
untracked files, except ignored ones) is saved as a commit below
refs/teamctl/rescue/TEAM/MEMBER/ in the repository. It stays until it is dropped, also
if the team was deleted: then --repo names the repository, or the current directory is
the repository.`,
		Example: `  teamctl rescue ls
  teamctl rescue show rescue/demo/builder/20260102T030405.678Z
  teamctl rescue restore rescue/demo/builder/20260102T030405.678Z`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	cmd.PersistentFlags().StringVar(&repo, "repo", "", "repository (default: the team's, else the current directory)")
	cmd.AddCommand(newRescueLs(a, &repo), newRescueShow(a, &repo), newRescueRestore(a, &repo), newRescueDrop(a, &repo))
	return cmd
}

// saved returns what the command reads from, and the caller. A deleted team counts as no team.
func (a *app) saved(ctx context.Context, repo string) (*tool.Env, tool.SavedIn, tool.Caller, error) {
	in := tool.SavedIn{Repo: repo}
	env, err := a.tools()
	if err != nil {
		return nil, in, tool.Caller{}, err
	}
	key, err := a.key(ctx, env)
	switch {
	case err == nil:
		in.Team = key
		_, _, c, err := a.target(ctx)
		return env, in, c, err
	case a.team != "" && team.ReasonOf(err) == "team_not_found":
		in.Team, err = team.TeamKey(a.team)
		return env, in, a.outsider(), err
	case repo != "" || team.ReasonOf(err) == "team_not_found" || team.ReasonOf(err) == "team_ambiguous":
		return env, in, a.outsider(), nil
	}
	return nil, in, tool.Caller{}, err
}

func newRescueLs(a *app, repo *string) *cobra.Command {
	var agent string
	var every bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List saved states, newest first",
		Example: "  teamctl rescue ls\n  teamctl rescue ls --member builder\n  teamctl rescue ls --all --repo ~/src/app",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, in, _, err := a.saved(cmd.Context(), *repo)
			if err != nil {
				return err
			}
			// A named repository is used without a team: its saved states outlive their teams.
			named := *repo != "" && a.team == "" && os.Getenv(team.EnvTeam) == ""
			in.Agent, in.Every = agent, every || named
			list, err := env.Rescues(cmd.Context(), in)
			if err != nil {
				return err
			}
			none := "nothing had to be rescued"
			if len(list) == 0 && in.Team != "" && !in.Every {
				in.Every = true
				others, err := env.Rescues(cmd.Context(), in)
				if err != nil {
					return err
				}
				if len(others) > 0 {
					none = fmt.Sprintf("nothing of team %s had to be rescued; %d saved of other teams: teamctl rescue ls --all", in.Team, len(others))
				}
			}
			kept, err := env.Kept(cmd.Context())
			if err != nil {
				a.out.note("%v", err)
			}
			if err := a.savedList("rescues", list, none); err != nil {
				return err
			}
			a.kept(kept)
			return nil
		},
	}
	cmd.Flags().StringVar(&agent, "member", "", "only of this member")
	cmd.Flags().BoolVar(&every, "all", false, "include every team of the repository (default with --repo)")
	return cmd
}

// savedList prints saved states.
func (a *app) savedList(name string, list []team.SavedWork, none string) error {
	if list == nil {
		list = []team.SavedWork{}
	}
	if a.out.value(map[string]any{name: list}) {
		return nil
	}
	if len(list) == 0 {
		a.out.note("%s", none)
		return nil
	}
	var rows [][]string
	for _, s := range list {
		rows = append(rows, []string{s.At.Local().Format("2006-01-02 15:04:05"), s.Agent, short(s.Commit), view.Cut(view.Clean(s.What), 50),
			strings.TrimPrefix(s.Ref, "refs/teamctl/")})
	}
	a.out.table([]string{"WHEN", "MEMBER", "COMMIT", "WHAT", "REF"}, rows, true)
	return nil
}

func newRescueShow(a *app, repo *string) *cobra.Command {
	var patch bool
	cmd := &cobra.Command{
		Use:     "show REF",
		Short:   "Show the contents of a saved state",
		Long:    "Show the files of a saved state that were not committed; --patch shows their text too.",
		Example: "  teamctl rescue show rescue/demo/builder/20260102T030405.678Z --patch\n  teamctl rescue show rescue/demo/builder/20260102T030405.678Z",
		Args:    takes(1, 1, "the ref of one saved state"),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, in, _, err := a.saved(cmd.Context(), *repo)
			if err != nil {
				return err
			}
			s, err := env.SavedShow(cmd.Context(), in, args[0], patch)
			if err != nil {
				return err
			}
			if a.out.value(s) {
				return nil
			}
			a.out.line("ref      %s", s.Ref)
			a.out.line("member   %s of %s", s.Agent, s.Team)
			a.out.line("saved    %s", s.At.Local().Format("2006-01-02 15:04:05"))
			a.out.line("what     %s", view.Clean(s.What))
			a.out.line("commit   %s, on top of %s", short(s.Commit), short(s.Head))
			a.out.text(printableLines(s.Changes))
			return nil
		},
	}
	cmd.Flags().BoolVarP(&patch, "patch", "p", false, "include the text of the changes")
	return cmd
}

// printableLines escapes control sequences in files.
func printableLines(s string) string {
	ls := strings.SplitAfter(s, "\n")
	for i, l := range ls {
		text, nl := strings.CutSuffix(l, "\n")
		ls[i] = printable(text)
		if nl {
			ls[i] += "\n"
		}
	}
	return strings.Join(ls, "")
}

func newRescueRestore(a *app, repo *string) *cobra.Command {
	in := tool.RestoreSavedIn{}
	cmd := &cobra.Command{
		Use:   "restore REF",
		Short: "Restore a saved state into a worktree",
		Long: `Create a worktree with the saved branch point, staged, changed and untracked files, on
a branch of its own. With --into, restore the state in a member's worktree instead;
its current state is rescued first, and the member must not be running. The saved
state stays.`,
		Example: `  teamctl rescue restore rescue/demo/builder/20260102T030405.678Z
  teamctl rescue restore rescue/demo/builder/20260102T030405.678Z --to ../look --branch look
  teamctl rescue restore rescue/demo/builder/20260102T030405.678Z --into builder`,
		Args: takes(1, 1, "the ref of one saved state"),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, where, c, err := a.saved(cmd.Context(), *repo)
			if err != nil {
				return err
			}
			in.SavedIn, in.Ref = where, args[0]
			res, err := env.RescueRestore(cmd.Context(), c, in)
			if err != nil {
				return err
			}
			return a.restored(res)
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Path, "to", "", "where to make it")
	f.StringVar(&in.Branch, "branch", "", "branch to make (default rescued/...)")
	f.StringVar(&in.Into, "into", "", "member whose worktree it becomes")
	_ = cmd.MarkFlagDirname("to")
	a.complete(cmd, "into", a.completeMembers(false))
	return cmd
}

func (a *app) restored(res tool.RestoredOut) error {
	if a.out.value(res) {
		return nil
	}
	a.out.line("restored %s to %s on branch %s", res.Ref, res.Path, dash(res.Branch))
	if res.Rescue != "" {
		a.out.line("what was there is in %s", res.Rescue)
	}
	for _, n := range res.Notes {
		a.out.note("%s", n)
	}
	return nil
}

func newRescueDrop(a *app, repo *string) *cobra.Command {
	return &cobra.Command{
		Use:     "drop REF...",
		Short:   "Delete saved states for good",
		Long:    "Delete saved states. Git deletes their files some weeks later; until then the commits that are printed find them.",
		Example: "  teamctl rescue drop rescue/demo/builder/20260102T030405.678Z\n  teamctl rescue drop rescue/demo/builder/20260102T030405.678Z --json",
		Args:    takes(1, -1, "the ref of a saved state"),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, in, c, err := a.saved(cmd.Context(), *repo)
			if err != nil {
				return err
			}
			list, err := env.RescueDrop(cmd.Context(), c, in, args)
			if err != nil {
				return err
			}
			if a.out.value(map[string]any{"dropped": list}) {
				return nil
			}
			for _, s := range list {
				a.out.line("dropped %s (was %s)", s.Ref, s.Commit)
			}
			return nil
		},
	}
}

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/tool"
)

func newLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"teams"},
		Short:   "List the teams",
		Long: `List the teams. A ? before the number of members says that it is unknown how many of
them run: the team's supervisor has ended, or does not answer.`,
		Example: `  teamctl ls
  teamctl ls --json`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := a.tools()
			if err != nil {
				return err
			}
			teams, err := env.Teams(cmd.Context())
			if err != nil {
				return err
			}
			if teams == nil {
				teams = []tool.TeamInfo{}
			}
			kept, err := env.Kept(cmd.Context())
			if err != nil {
				a.out.note("%v", err)
			}
			native := env.NativeTeams()
			shape := map[string]any{"teams": teams}
			if len(native) > 0 {
				shape["native"] = native
			}
			if len(kept) > 0 {
				shape["kept"] = kept
			}
			a.due = 0
			if slices.ContainsFunc(teams, func(t tool.TeamInfo) bool { return t.Silent }) {
				a.due = tool.SilentAfter // --watch may not know of it yet, and not tell when it answers
			}
			if a.out.value(shape) {
				return nil
			}
			defer a.kept(kept)
			defer a.natives(native)
			if len(teams) == 0 {
				a.out.note("there is no team yet")
				if len(native) > 0 {
					return nil
				}
				a.out.hint("teamctl create demo --repo .")
				return nil
			}
			defer a.unmaintained(teams)
			var rows [][]string
			for _, t := range teams {
				note, running := view.Clean(t.Repo), fmt.Sprint(t.Running)
				if t.Problem != "" {
					note = a.out.style.Red(view.Clean(t.Problem))
				}
				if t.Down != 0 {
					running = a.out.style.Yellow("?")
				}
				rows = append(rows, []string{
					t.Key, fmt.Sprintf("%s/%d", running, t.Members), fmt.Sprintf("%d/%d", t.Tasks.Completed, t.Tasks.Total()),
					pid(t.Supervisor), age(t.CreatedAt), dash(note),
				})
			}
			a.out.table([]string{"TEAM", "RUNNING", "DONE", "SUPERVISOR", "AGE", "REPO"}, rows, false)
			return nil
		},
	}
}

// unmaintained says since when the members of teams are unknown.
func (a *app) unmaintained(list []tool.TeamInfo) {
	for _, t := range list {
		if t.Down != 0 && t.Problem == "" {
			a.out.note("%s: %s: which members run is unknown", t.Key, view.DownWords(time.UnixMilli(t.Down), t.Silent))
			a.out.hint("teamctl ps --team %s", t.Key)
		}
	}
}

// kept lists what deleted teams left behind, with the commands that restore it.
func (a *app) kept(list []tool.Kept) {
	if a.out.json {
		return
	}
	for _, k := range list {
		a.out.note("kept of a deleted team: %s", k.Path)
		a.out.hint("%s", k.Restore)
	}
}

// natives lists teams of another program, with the command that joins them.
func (a *app) natives(list []tool.NativeTeam) {
	for _, n := range list {
		a.out.note("%s", view.Clean(n.String()))
		a.out.hint("%s", n.Bridge)
	}
}

// pid formats a process id for people.
func pid(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// age is the time since ms, Unix milliseconds.
func age(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return view.Elapsed(time.Since(time.UnixMilli(ms)))
}

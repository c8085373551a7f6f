package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newRun(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run VERB",
		Short: "Manage runs of the team: start, show, list, close",
		Long: `Manage runs. A run is one go of a team. Messages, the limit on their number, and the scratchpad
belong to the run; tasks and members stay from run to run. A team always has one
current run: the deepest that is open, for a run may hold sub-runs.`,
		Example: `  teamctl run start "release 2"
  teamctl run start --sub "review"
  teamctl run close`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	for _, m := range []func(*app) *cobra.Command{newRunStart, newRunShow, newRunList, newRunClose} {
		cmd.AddCommand(m(a))
	}
	return cmd
}

func newRunStart(a *app) *cobra.Command {
	var in ledger.RunStart
	cmd := &cobra.Command{
		Use:   "start [NAME]",
		Short: "Start the next run, or a part of the current one",
		Long: `Start a run with an empty scratchpad and no messages. The runs that are open are
closed; with --sub they stay open, and the new run is a part of the current one.`,
		Example: "  teamctl run start \"release 2\"\n  teamctl run start --sub review",
		Args:    takes(0, 1, "one name, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				in.Name = args[0]
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				run, err := t.RunStart(cmd.Context(), c, in)
				if err != nil {
					return err
				}
				if !a.out.value(run) {
					a.out.line("%d", run.ID)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&in.Sub, "sub", false, "make it a part of the current run, which stays open")
	return cmd
}

// runID parses the number of a run; 0 if none was given.
func runID(args []string) (int64, error) {
	if len(args) == 0 {
		return 0, nil
	}
	id, err := strconv.ParseInt(taskID(args[0]), 10, 64)
	if err != nil || id <= 0 {
		return 0, team.Errorf(team.CodeInvalid, "invalid run number %q", args[0]).WithHint("teamctl run list")
	}
	return id, nil
}

func newRunShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show [ID]",
		Short:   "Show a run and its scratchpad (default: the current one)",
		Example: "  teamctl run show\n  teamctl run show 2 --json",
		Args:    takes(0, 1, "the number of a run"),

		ValidArgsFunction: first(a.completeRuns(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := runID(args)
			if err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				r, err := t.Ledger.RunInfo(cmd.Context(), id)
				if err != nil {
					return err
				}
				if a.out.value(r) {
					return nil
				}
				fact := func(name, text string) {
					if text != "" {
						a.out.line("%-12s %s", name, text)
					}
				}
				fact("run", strconv.FormatInt(r.ID, 10))
				fact("name", view.Clean(r.Name))
				fact("state", runState(r))
				if r.Parent != 0 {
					fact("part of", strconv.FormatInt(r.Parent, 10))
				}
				fact("started", when(r.StartedAt))
				fact("closed", when(r.EndedAt))
				fact("messages", strconv.Itoa(r.Messages)+" of "+strconv.Itoa(r.Cap))
				fact("scratchpad", "version "+strconv.FormatInt(r.Scratchpad.Version, 10)+"  "+view.Clean(string(r.Scratchpad.Doc)))
				return nil
			})
		},
	}
}

func runState(r ledger.RunInfo) string {
	switch {
	case r.EndedAt != 0:
		return "closed"
	case r.Current:
		return "current"
	}
	return "open"
}

func newRunList(a *app) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the runs, newest first",
		Example: "  teamctl run list\n  teamctl run list --limit 5 --json",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				runs, err := t.Ledger.Runs(cmd.Context(), limit)
				if err != nil {
					return err
				}
				if a.out.value(map[string]any{"runs": runs}) {
					return nil
				}
				var rows [][]string
				for _, r := range runs {
					parent := ""
					if r.Parent != 0 {
						parent = strconv.FormatInt(r.Parent, 10)
					}
					rows = append(rows, []string{strconv.FormatInt(r.ID, 10), dash(view.Cut(view.Clean(r.Name), 40)), runState(r),
						dash(parent), strconv.Itoa(r.Messages), age(r.StartedAt)})
				}
				a.out.table([]string{"RUN", "NAME", "STATE", "PART OF", "MESSAGES", "STARTED"}, rows, false)
				return nil
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "only the newest N")
	return cmd
}

func newRunClose(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "close [ID]",
		Short: "Close the current run, or a run with its sub-runs",
		Long: `Close a run with all sub-runs in it. The run that held it is the current one then.
When there is none, the next run is started: a team always has one.`,
		Example: "  teamctl run close\n  teamctl run close 3",
		Args:    takes(0, 1, "the number of a run"),

		ValidArgsFunction: first(a.completeRuns(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := runID(args)
			if err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				done, err := t.RunClose(cmd.Context(), c, id)
				if err != nil {
					return err
				}
				if a.out.value(done) {
					return nil
				}
				if done.Outcome != "" {
					a.out.line("%d is closed already", id)
				}
				for _, id := range done.Closed {
					a.out.line("closed %d", id)
				}
				a.out.note("the current run is %d", done.Current.ID)
				return nil
			})
		},
	}
}

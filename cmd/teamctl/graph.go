package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/tui"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

var graphFormats = []string{"text", "mermaid", "dot", "svg", "json"}

func newGraph(a *app) *cobra.Command {
	var (
		format, task string
		depth        int
		run          int64
		ascii        bool
	)
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Draw the tasks and their dependencies",
		Long: `Show the tasks and their dependencies, drawn from left to right, with the chain that
has taken longest as the critical path: as text, for Mermaid or Graphviz, as a
picture, or as data with the position of each task. The same tasks give the same
drawing. --task draws only those around one task, --run those that existed in a run.`,
		Example: `  teamctl graph
  teamctl graph --task 5 --depth 1
  teamctl graph --run 2
  teamctl graph --format svg > tasks.svg`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !slices.Contains(graphFormats, format):
				return usage(cmd, "--format is text, mermaid, dot, svg or json, not %q", format)
			case depth < 0:
				return usage(cmd, "--depth must not be negative")
			case task == "" && cmd.Flags().Changed("depth"):
				return usage(cmd, "--depth goes with --task")
			case cmd.Flags().Changed("run") && run <= 0:
				return usage(cmd, "invalid run number %d", run)
			case task != "" && run != 0:
				return usage(cmd, "--task and --run do not go together")
			case ascii && format != "text":
				return usage(cmd, "--ascii goes with --format text")
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				now := time.Now()
				g, err := graph(cmd.Context(), t, taskID(task), depth, run, now)
				if err != nil || a.out.value(g) {
					return err
				}
				a.putGraph(g, format, ascii, now)
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", "text", "text, mermaid, dot, svg or json")
	f.StringVar(&task, "task", "", "only the tasks around this one")
	f.Int64Var(&run, "run", 0, "only the tasks that existed in this run")
	f.BoolVar(&ascii, "ascii", false, "draw text with ASCII characters only")
	f.IntVar(&depth, "depth", 2, "with --task: how many dependencies away")
	a.complete(cmd, "format", words(graphFormats...))
	a.complete(cmd, "task", a.completeTasks(ledger.TaskFilter{Newest: true}))
	return cmd
}

// graph lays out the tasks of a team, those around one, or those of a run.
func graph(ctx context.Context, t *tool.Team, around string, depth int, run int64, now time.Time) (view.Graph, error) {
	list, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{})
	if err != nil {
		return view.Graph{}, err
	}
	if run != 0 {
		w, err := look.RunWindow(ctx, t, run, now)
		if err != nil {
			return view.Graph{}, err
		}
		list = slices.DeleteFunc(list, func(x ledger.Task) bool { return !w.HasTask(x) })
	}
	deps := map[string][]string{}
	for _, x := range list {
		deps[x.ID] = x.DependsOn
	}
	if around != "" {
		if _, ok := deps[around]; !ok {
			_, err := t.Ledger.Task(ctx, around)
			return view.Graph{}, err
		}
	}
	tasks := look.Tasks(list)
	if around != "" {
		near := view.Around(around, depth, deps)
		tasks = slices.DeleteFunc(tasks, func(x view.Task) bool { return !near[x.ID] })
	}
	g, err := view.NewGraph(tasks, deps, now)
	if err != nil {
		return view.Graph{}, team.Errorf(team.CodeLimit, "draw %d tasks: %w", len(tasks), err).WithHint("teamctl graph --task ID draws those around one")
	}
	return g, nil
}

func (a *app) putGraph(g view.Graph, format string, ascii bool, now time.Time) {
	switch format {
	case "mermaid":
		a.out.text(g.Mermaid(now))
	case "dot":
		a.out.text(g.DOT(now))
	case "svg":
		a.out.text(g.SVG(now))
	case "json":
		a.out.encode(g, "  ")
	default:
		if len(g.Nodes) == 0 {
			a.out.note("no tasks")
			return
		}
		s := a.out.style
		signs := strings.NewReplacer(" ▸ ", " "+s.Cyan("▸")+" ", " ✓ ", " "+s.Green("✓")+" ", " ✗ ", " "+s.Red("✗")+" ", " ! ", " "+s.Yellow("!")+" ")
		if ascii {
			signs = strings.NewReplacer(" > ", " "+s.Cyan(">")+" ", " + ", " "+s.Green("+")+" ", " x ", " "+s.Red("x")+" ", " ! ", " "+s.Yellow("!")+" ")
		}
		lines := g.Text(now)
		if a.out.screen != nil {
			cols, _ := a.out.size()
			lines = g.TextIn(now, cols)
		}
		for _, l := range lines {
			if ascii {
				l = tui.ASCII(l)
			}
			a.out.line("%s", signs.Replace(l))
		}
	}
}

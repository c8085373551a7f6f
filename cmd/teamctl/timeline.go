package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/page"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

var timelineFormats = []string{"text", "svg", "html", "json", "trace"}

func newTimeline(a *app) *cobra.Command {
	var (
		format string
		ascii  bool
		span   window
	)
	cmd := &cobra.Command{
		Use:   "timeline",
		Short: "Draw a timeline of the members' activity",
		Long: `Show a lane for each member of a run: when it was working, waiting for you, limited by its
provider, idle or down, and the tasks that it held. As text a column is the state that took
most of its time, a number is a task that begins there. --format trace writes the Trace
Event Format, which ui.perfetto.dev opens; svg and html need nothing else.`,
		Example: `  teamctl timeline
  teamctl timeline --since 30m
  teamctl timeline --run 2 --format html > run2.html
  teamctl timeline --format trace > trace.json`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(timelineFormats, format) {
				return usage(cmd, "--format is text, svg, html, json or trace, not %q", format)
			}
			if err := span.check(cmd); err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				w, err := span.of(cmd.Context(), t, time.Now())
				if err != nil {
					return err
				}
				l, err := look.Timeline(cmd.Context(), t, w)
				if err != nil || a.out.value(l) {
					return err
				}
				return a.putTimeline(l, format, ascii)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", "text", "text, svg, html, json or trace")
	f.BoolVar(&ascii, "ascii", false, "draw text with ASCII characters only")
	span.flags(cmd)
	a.complete(cmd, "format", words(timelineFormats...))
	return cmd
}

func (a *app) putTimeline(l view.Timeline, format string, ascii bool) error {
	switch format {
	case "svg":
		a.out.text(l.SVG())
	case "html":
		var b strings.Builder
		if err := page.Timeline(&b, l); err != nil {
			return err
		}
		a.out.text(b.String())
	case "json":
		a.out.encode(l, "  ")
	case "trace":
		data, err := l.Trace()
		if err != nil {
			return err
		}
		a.out.text(string(data) + "\n")
	default:
		if len(l.Lanes) == 0 {
			a.out.note("no members in that time")
			return nil
		}
		cols := 120
		if a.out.screen != nil {
			cols, _ = a.out.size()
		}
		for _, line := range l.Text(view.Drawing{Cols: cols, ASCII: ascii, Paint: a.out.style.Lane}) {
			a.out.line("%s", line)
		}
	}
	return nil
}

// window selects a part of a team's history: a run, by default the current one, or the time since
// a moment.
type window struct {
	run   int64
	since string
}

func (w *window) flags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&w.run, "run", 0, "this run (default the current one)")
	cmd.Flags().StringVar(&w.since, "since", "", "start of the period: 30m, 2h, 3d, or a time like 2006-01-02T15:04")
}

func (w *window) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("run") && cmd.Flags().Changed("since") {
		return usage(cmd, "--run and --since do not go together")
	}
	if cmd.Flags().Changed("run") && w.run <= 0 {
		return usage(cmd, "invalid run number %d", w.run)
	}
	if w.since == "" && cmd.Flags().Changed("since") {
		return usage(cmd, "--since needs a duration or a time")
	}
	_, err := sinceTime(w.since, time.Now())
	return err
}

func (w *window) of(ctx context.Context, t *tool.Team, now time.Time) (look.Window, error) {
	if w.since == "" {
		return look.RunWindow(ctx, t, w.run, now)
	}
	from, err := sinceTime(w.since, now)
	return look.Window{From: from, To: now}, err
}

// sinceTime is the time that a person means by 30m, 3d, 2026-01-02 or 2026-01-02T15:04.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if d, err := parseAge(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil && !at.After(now) {
			return at, nil
		}
	}
	return time.Time{}, team.Errorf(team.CodeInvalid, "invalid time %q: it must be a past one", text).WithHint("--since 30m, 2h, 3d or 2006-01-02T15:04")
}

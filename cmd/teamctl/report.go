package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/page"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

func newReport(a *app) *cobra.Command {
	var (
		format, diffs string
		span          window
	)
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write a report of a run, as one file",
		Long: `Write a report of a run: results and what still needs attention, tasks with their
graph and durations, a timeline, approvals, failures, tokens and cost if programs
report them, merges and changes. HTML needs neither network nor JavaScript; Markdown
has the graph as Mermaid. Values of the environment and likely secrets are masked. -o
names the file to write, ./json for one named like a format; the default is standard
output.`,
		Example: `  teamctl report -o report.html
  teamctl report --run 2 --format md --diffs none
  teamctl report --since 1d --diffs full -o day.html`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case format != "html" && format != "md":
				return usage(cmd, "--format is html or md, not %q", format)
			case !slices.Contains([]string{"none", "stat", "full"}, diffs):
				return usage(cmd, "--diffs is none, stat or full, not %q", diffs)
			}
			if err := span.check(cmd); err != nil {
				return err
			}
			file := a.out.file
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				r, err := a.report(cmd.Context(), t, span, look.Diffs(diffs))
				if err != nil || file == "" && a.out.value(r) {
					return err
				}
				var b strings.Builder
				if err := page.Report(&b, r, format == "md"); err != nil {
					return err
				}
				if file == "" {
					a.out.text(b.String())
					return nil
				}
				if err := atomicfile.Write(file, []byte(b.String()), 0o600, false); err != nil {
					return team.Errorf(team.CodeInvalid, "write the report: %w", err)
				}
				if !a.out.value(map[string]any{"file": file, "bytes": b.Len()}) {
					a.out.line("wrote %s, %d KB", file, (b.Len()+1023)/1024)
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", "html", "html or md")
	f.StringVar(&diffs, "diffs", "stat", "changes of members: none, stat or full")
	span.flags(cmd)
	a.complete(cmd, "format", words("html", "md"))
	a.complete(cmd, "diffs", words("none", "stat", "full"))
	return cmd
}

// report reads it, masked.
func (a *app) report(ctx context.Context, t *tool.Team, span window, diffs look.Diffs) (r view.Report, err error) {
	w, err := span.of(ctx, t, time.Now())
	if err != nil {
		return r, err
	}
	if r, err = look.Report(ctx, t, w, diffs); err != nil {
		return r, err
	}
	home, _ := os.UserHomeDir() // without one no path is shortened to it
	data, err := os.ReadFile(t.Layout.SupervisorEnv())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	mask, err := look.ReportMask(ctx, t, append(look.Recorded(data), os.Environ()...), home)
	if err != nil {
		return r, err
	}
	mask.All(&r)
	return r, nil
}

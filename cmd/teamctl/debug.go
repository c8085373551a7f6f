package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newDebug(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "debug VERB",
		Short: "Look inside the team's supervisor",
		Long: `Look inside the running supervisor of a team. Nothing of the team is changed, and
no supervisor is started. Profiles are on its socket, under /debug/pprof/:

  curl --unix-socket "$(teamctl ps --json | jq -r .socket)" http://x/debug/pprof/heap`,
		Example: "  teamctl debug state\n  teamctl debug events",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	sub := func(use, short string, run func(*cobra.Command, tool.Supervisor) error) {
		cmd.AddCommand(&cobra.Command{
			Use: use, Short: short, Args: takes(0, 0, ""), Example: "  teamctl debug " + use + "\n  teamctl debug " + use + " --json",
			RunE: func(cmd *cobra.Command, _ []string) error {
				return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
					s, err := t.RunningSupervisor(cmd.Context())
					if err != nil {
						return err
					}
					return run(cmd, s)
				})
			},
		})
	}
	sub("state", "Show the members and timers of the supervisor's loop", a.debugState)
	sub("events", "Show the newest messages of the supervisor's loop", a.debugEvents)
	sub("panes", "Show where each member's screen is", a.debugPanes)
	sub("goroutines", "Show the stacks of the supervisor's goroutines", func(cmd *cobra.Command, s tool.Supervisor) error {
		text, err := s.Goroutines(cmd.Context())
		if err == nil && !a.out.value(map[string]string{"goroutines": text}) {
			a.out.text(text)
		}
		return err
	})
	cmd.AddCommand(newDebugRecord(a))
	return cmd
}

func (a *app) debugState(cmd *cobra.Command, s tool.Supervisor) error {
	d, err := s.Debug(cmd.Context())
	if err != nil || a.out.value(d) {
		return err
	}
	var rows [][]string
	for _, m := range d.Members {
		rows = append(rows, []string{m.Name, m.Desired, m.Observed, dash(m.Step), dash(m.Stopping), yes(m.Attached), dash(m.Generation)})
	}
	a.out.table([]string{"NAME", "DESIRED", "OBSERVED", "STEP", "STOPPING", "ATTACHED", "GENERATION"}, rows, false)
	for _, t := range d.Timers {
		a.out.line("timer %s", t)
	}
	a.out.line("last event %d", d.LastSeq)
	return nil
}

func (a *app) debugEvents(cmd *cobra.Command, s tool.Supervisor) error {
	d, err := s.Debug(cmd.Context())
	if err != nil || a.out.value(map[string][]team.Trace{"recent": d.Traces}) {
		return err
	}
	for _, t := range d.Traces {
		a.out.line("%s %8s  %s", t.At.Format("15:04:05.000"), t.Took.Round(time.Microsecond), t.What)
	}
	return nil
}

func (a *app) debugPanes(cmd *cobra.Command, s tool.Supervisor) error {
	st, err := s.Status(cmd.Context())
	if err != nil || a.out.value(st) {
		return err
	}
	var rows [][]string
	for _, m := range st.Members {
		p := m.Pane
		rows = append(rows, []string{m.Name, dash(p.Backend), dash(p.PaneID), dash(p.WindowID), dash(p.Session), dash(p.Socket), yes(p.Private)})
	}
	a.out.table([]string{"NAME", "BACKEND", "PANE", "WINDOW", "SESSION", "SOCKET", "PRIVATE"}, rows, false)
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

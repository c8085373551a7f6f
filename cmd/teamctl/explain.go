package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

// explained is why a member has the state shown.
type explained struct {
	Member string `json:"member"`
	team.Report
}

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain MEMBER",
		Short: "Explain why a member is shown as it is",
		Long: `Print what a member is doing as far as known, the source, and the last report of each
source: its process, the CLI's own status, its hooks, the terminal's title, and the
rules for its screen with the matching lines. A less trusted source counts only if a
better one cannot know.`,
		Example: "  teamctl explain builder\n  teamctl explain builder --json", Args: takes(1, 1, "a member"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				if err := memberNames(cmd.Context(), t, args); err != nil {
					return err
				}
				s, err := t.RunningSupervisor(cmd.Context())
				if err != nil {
					return err
				}
				r, err := s.Explain(cmd.Context(), args[0])
				if err != nil || a.out.value(explained{args[0], r}) {
					return err
				}
				what := string(r.Activity)
				if r.For != "" {
					what += " for " + string(r.For)
				}
				if !r.Until.IsZero() {
					what += " until " + r.Until.Local().Format("15:04")
				}
				by := ""
				if r.Source != "" {
					by = ", says " + view.Clean(r.Source)
				}
				ready := "not ready"
				if r.Ready {
					ready = "ready"
				}
				a.out.line("%s is %s (%s)%s", args[0], what, ready, by)
				m, err := t.Member(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if look.Paused(m) {
					a.out.line("it is paused: teamctl resume %s", m.Name)
				}
				if m.Spec.Mode == team.ModePlan {
					a.out.line("it is in plan mode: it takes no tasks until its plan is approved")
				}
				for _, e := range r.Evidence {
					a.out.line("    %s", view.Clean(e))
				}
				if r.NoHooks {
					a.out.line("%s", team.WhyNoHooks)
				}
				if r.Failed != "" {
					a.out.line("its last turn failed: %s", view.Clean(r.Failed))
				}
				if r.ModeFrom != "" {
					a.out.line("its mode is %s, in effect %s", modeOf(r.Mode), r.ModeFrom)
				}
				var rows [][]string
				for _, o := range r.Tiers {
					rows = append(rows, []string{o.Tier.String(), seenAs(o), view.Elapsed(time.Since(o.At)) + " ago", view.Clean(o.Source)})
				}
				if len(rows) > 0 {
					a.out.table([]string{"TIER", "SAYS", "WHEN", "SOURCE"}, rows, false)
				}
				return nil
			})
		},
	}
}

func seenAs(o team.Observation) string {
	s := string(o.Activity)
	if o.For != "" {
		s += " (" + string(o.For) + ")"
	}
	return s
}

func newInterrupt(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "interrupt MEMBER",
		Short: "Interrupt the current turn of an agent",
		Long: `Interrupt the current turn of an agent, by its own means: a call of its server,
Escape, or Ctrl-C. The agent keeps running; its conversation continues with the next
message. A built-in worker's task is canceled and its command ended; the worker
continues with its next task.`,
		Example: "  teamctl interrupt builder\n  teamctl interrupt builder --json", Args: takes(1, 1, "a member"), ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if err := memberNames(cmd.Context(), t, args); err != nil {
					return err
				}
				err := t.Interrupt(cmd.Context(), c, args[0])
				if err != nil || a.out.value(map[string]string{"member": args[0], "outcome": "interrupted"}) {
					return err
				}
				a.out.line("interrupted %s", args[0])
				return nil
			})
		},
	}
}

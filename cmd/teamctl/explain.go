package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

// explained is why a member has the state shown.
type explained struct {
	Member string `json:"member"`
	team.Report
	Turn      *explainedTurn `json:"turn,omitempty"`      // of a built-in agent with a model
	Decisions []ledger.Event `json:"decisions,omitempty"` // the newest about its turns, oldest first
}

// explainedTurn is the turn of a conversation that is open.
type explainedTurn struct {
	ID      int64          `json:"id"`
	State   team.TurnState `json:"state"`
	Attempt int            `json:"attempt"`
	Answers int            `json:"answers"` // of its model so far
	Reason  string         `json:"reason,omitempty"`
}

// maxDecisions is the number of decisions that explain shows.
const maxDecisions = 5

// explainTurn adds the open turn of a member with a conversation in the ledger, and the newest
// decisions about its turns.
func explainTurn(ctx context.Context, t *tool.Team, m ledger.Member, e *explained) error {
	if !team.KindOf(m.Spec.Agent).Sessions {
		return nil
	}
	open, err := t.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: m.SessionKey, Open: true})
	if err != nil {
		return err
	}
	for _, j := range open {
		if e.Turn != nil && j.State != team.TurnRunning {
			continue
		}
		so, err := t.Ledger.TurnSoFar(ctx, j.Session, j.ID)
		if err != nil {
			return err
		}
		e.Turn = &explainedTurn{ID: j.ID, State: j.State, Attempt: j.Attempt, Answers: so.Answers, Reason: j.Reason}
	}
	all, err := t.Ledger.Events(ctx, 0, 0, ledger.EventFilter{ID: m.SessionKey})
	e.Decisions = all[max(0, len(all)-maxDecisions):]
	return err
}

func (a *app) showExplainedTurn(e explained) {
	if j := e.Turn; j != nil {
		line := fmt.Sprintf("turn %d is %s: attempt %d, %d answers so far", j.ID, j.State, j.Attempt, j.Answers)
		if j.Reason != "" {
			line += "; " + printable(j.Reason)
		}
		a.out.line("%s", line)
	}
	for _, d := range e.Decisions {
		a.out.line("    %s  %s", a.eventLine(d), view.Clean(string(d.Data)))
	}
}

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain MEMBER",
		Short: "Explain why a member is shown as it is",
		Long: `Print what a member is doing as far as known, the source, and the last report of each
source: its process, the CLI's own status, its hooks, the terminal's title, and the
rules for its screen with the matching lines. A less trusted source counts only if a
better one cannot know. Of an agent of kind llm it also prints the current turn, and
the newest decisions about its turns.`,
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
				if err != nil {
					return err
				}
				m, err := t.Member(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				out := explained{Member: args[0], Report: r}
				if err := explainTurn(cmd.Context(), t, m, &out); err != nil || a.out.value(out) {
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
				a.showExplainedTurn(out)
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

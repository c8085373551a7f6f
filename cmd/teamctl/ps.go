package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

// psMember is a member in ps --json.
type psMember struct {
	ledger.Member
	Task    *psTask `json:"task,omitempty"`
	WaitsOn string  `json:"waitsOn,omitempty"` // what a waiting member waits for: "permission 3", "trust"
	tool.Runtime
}

type psTask struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	Since   int64  `json:"since"`
	Waits   string `json:"waits,omitempty"` // what a submitted task waits for
}

func newPs(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the members with their activity and place",
		Long: `List the members of the team. STATE is the process (running, backoff, ...),
ACTIVITY what the agent does and what it waits for, SINCE for how long; one in plan mode takes no tasks until its plan is
approved, and one that is paused does nothing until it is resumed; unknown means just that, not idle, and stalled that one
that works has shown nothing for ten minutes (interrupt or restart aborts it).`,
		Example: `  teamctl ps
  teamctl ps -o wide
  teamctl ps --all --json`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				members, sup, err := roster(cmd.Context(), t, all, a.out.json)
				if err != nil {
					return err
				}
				a.due = psDue(t, members)
				doc := map[string]any{"team": t.Layout.Key, "supervisorPid": sup, "members": members}
				if sup != 0 {
					doc["socket"] = t.Layout.Socket()
				}
				if a.out.value(doc) {
					return nil
				}
				if len(members) <= 1 {
					return a.noMembers(cmd.Context(), t)
				}
				a.psTable(members, a.out.wide())
				if lead, err := t.LeadAnswersPermissions(cmd.Context()); err != nil || !lead {
					return err
				}
				a.out.note("the program that leads may answer permission requests")
				a.out.hint("teamctl settings %s --unset --team %s", tool.SetLeadAnswers, t.Layout.Key)
				return nil
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also list members that have left")
	return cmd
}

// roster returns the members with their tasks, and the supervisor's pid. Unless whole, it omits
// what no table shows.
func roster(ctx context.Context, t *tool.Team, all, whole bool) ([]psMember, int, error) {
	members, sup, err := t.Members(ctx)
	if err != nil {
		return nil, 0, err
	}
	if all {
		left, err := t.Left(ctx)
		if err != nil {
			return nil, 0, err
		}
		members = append(members, left...)
	}
	sessions := make([]string, len(members))
	for i, m := range members {
		sessions[i] = m.SessionKey
	}
	tasks, err := t.Ledger.InHand(ctx, sessions)
	if err != nil {
		return nil, 0, err
	}
	waits, err := look.WaitsOn(ctx, t, members)
	if err != nil {
		return nil, 0, err
	}
	run := make([]tool.Runtime, len(members))
	if whole {
		if run, err = t.Runtimes(ctx, members); err != nil {
			return nil, 0, err
		}
	}
	out := make([]psMember, 0, len(members))
	for i, m := range members {
		p := psMember{Member: m, Runtime: run[i], WaitsOn: waits[m.Name]}
		if since := state.Stalled(t.Layout, m, time.Now()); !since.IsZero() {
			p.StalledSince = since.UnixMilli()
		}
		if task, has := tasks[m.SessionKey]; has {
			p.Task = &psTask{task.ID, task.Subject, max(task.StartedAt, task.ClaimedAt), look.HandedIn(task)}
		}
		out = append(out, p)
	}
	return out, sup, nil
}

// noMembers reports an empty roster and lists the members that have left.
func (a *app) noMembers(ctx context.Context, t *tool.Team) error {
	left, err := t.Left(ctx)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		a.out.note("team %s has no members yet", t.Layout.Key)
		a.out.hint("teamctl spawn builder --team %s", t.Layout.Key)
		return nil
	}
	var names []string
	for _, m := range left {
		names = append(names, m.Name)
	}
	a.out.note("team %s has no members now; %s left", t.Layout.Key, strings.Join(names, ", "))
	a.out.hint("teamctl start %s --team %s", strings.Join(names, " "), t.Layout.Key)
	return nil
}

// psDue is the time until the list changes by itself: a member stalls, or an age changes.
func psDue(t *tool.Team, members []psMember) time.Duration {
	now := time.Now()
	rows := make([]ledger.Member, len(members))
	due := time.Duration(0)
	for i, m := range members {
		rows[i] = m.Member
		if next := view.AgeChanges(now.Sub(stateSince(m.Member))); m.Name != team.LeadName && (due == 0 || next < due) {
			due = next
		}
	}
	if stall := state.StallDue(t.Layout, rows, now); stall > 0 && (due == 0 || stall < due) {
		due = stall
	}
	return due
}

func (a *app) psTable(members []psMember, wide bool) {
	head := []string{"NAME", "STATE", "ACTIVITY", "TASK", "PID", "PANE", "RESTARTS", "SINCE", "BRANCH"}
	if wide {
		head = append(head, "AGENT", "ROLE", "MODE", "BACKEND", "WORKTREE", "WHY")
	}
	var rows [][]string
	for _, m := range members {
		if m.Name == team.LeadName {
			continue
		}
		row := []string{
			a.out.style.Member(m.Color, m.Name), a.state(m.Member), a.activity(m), taskCell(m.Task),
			pid(m.PID), dash(m.PaneID), fmt.Sprint(m.Restarts), view.Age(time.Since(stateSince(m.Member))), dash(m.Branch),
		}
		if wide {
			row = append(row, m.Spec.Agent, string(m.Role), string(modeOf(m.Spec.Mode)), dash(m.Spec.Backend), dash(m.Worktree), dash(view.Clean(look.Why(m.Member))))
		}
		rows = append(rows, row)
	}
	a.out.table(head, rows, wide)
	for _, m := range members {
		if !wide && (state.Unknown(m.Member) || state.HasNoHooks(m.Member)) {
			a.out.line("%s: %s", m.Name, view.Clean(m.Reason))
		}
	}
}

func (a *app) state(m ledger.Member) string {
	s := string(m.Observed)
	switch {
	case m.RemovedAt != 0:
		return a.out.style.Dim("left")
	case m.Observed == team.Exited || m.Observed == team.Failed || m.Observed == team.Killed:
		if m.ExitText != "" {
			s += " (" + view.Clean(m.ExitText) + ")"
		}
		return a.out.style.Red(s)
	case m.Observed == team.Backoff:
		if left := time.Until(time.UnixMilli(m.NextStart)); left > 0 {
			s += " (" + view.Elapsed(left) + ")"
		}
		return a.out.style.Yellow(s)
	case state.Unknown(m):
		return a.out.style.Yellow("unknown")
	case m.Observed == team.Running:
		return a.out.style.Green(s)
	}
	return s
}

// stateSince is the time since which a member has its activity, or has not been running.
func stateSince(m ledger.Member) time.Time {
	if m.Observed == team.Running && m.ActivityAt != 0 {
		return time.UnixMilli(m.ActivityAt)
	}
	return time.UnixMilli(look.Since(m))
}

// activity returns what a running agent is doing, and how long ago that was observed.
func (a *app) activity(m psMember) string {
	if m.WaitsOn != "" {
		return "waiting (" + m.WaitsOn + ")"
	}
	if m.StalledSince == 0 {
		return activity(m.Member)
	}
	return activity(m.Member) + " " + a.out.style.Yellow("(stalled "+view.Elapsed(time.Since(time.UnixMilli(m.StalledSince)))+")")
}

// activity returns what a running agent is doing; empty for others.
func activity(m ledger.Member) string {
	if m.Observed != team.Running {
		return "-"
	}
	what := string(m.Activity)
	switch {
	case look.Paused(m):
		return "paused"
	case m.Activity == team.Waiting && m.WaitsFor != "":
		what = fmt.Sprintf("waiting (%s)", m.WaitsFor)
	case m.Activity == team.Limited && m.LimitedTo != 0:
		what = "limited until " + time.UnixMilli(m.LimitedTo).Format("15:04")
	case m.TurnError != "":
		what = "idle (its turn failed)"
	}
	if m.Spec.Mode == team.ModePlan {
		what += ", plan mode"
	}
	return what
}

func taskCell(t *psTask) string {
	if t == nil {
		return "-"
	}
	cell := t.ID + " " + view.Cut(view.Clean(t.Subject), 24)
	if t.Waits != "" {
		cell += " (" + t.Waits + ")"
	}
	return cell
}

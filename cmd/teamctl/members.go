package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newShutdown(a *app) *cobra.Command {
	var in team.StopRequest
	cmd := &cobra.Command{
		Use:   "shutdown [MEMBER...]",
		Short: "Shut members down: they finish and leave the team",
		Long: `Ask members to shut down: each gets a request in its mailbox, finishes its work and
approves, or rejects with a reason. A member that has not answered by the deadline is
ended (SIGTERM, then SIGKILL). A command is asked too if it has read mail, sent some
or worked on tasks since its start, or was spawned with --asks; any other is ended at
once. A program that has joined is asked and awaited in the same way; it leaves the
team, and its process is not ended. Claimed tasks return to the board, and the member
leaves the roster. Its worktree and branch stay (ps --all, worktree ls, merge), and
start or a spawn with the same name reuses them. The exit status is not 0 if a member
rejected.

To stop for today and continue with the same team tomorrow, use teamctl stop instead.`,
		Example: `  teamctl shutdown
  teamctl shutdown builder --reason "done for today"
  teamctl shutdown --wait 5m`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Names, in.Remove = args, true
			return a.stop(cmd.Context(), in)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&in.Wait, "wait", 10*time.Second, "maximum time for a member to answer and exit")
	f.StringVar(&in.Reason, "reason", "", "reason, sent to the members")
	return cmd
}

func newStop(a *app) *cobra.Command {
	var in team.StopRequest
	cmd := &cobra.Command{
		Use:   "stop [MEMBER...]",
		Short: "Stop members, or all of them; start brings them back",
		Long: `Stop members gracefully, as shutdown does, and keep them on the roster with
their worktree and branch. teamctl start brings them back.`,
		Example:           "  teamctl stop\n  teamctl stop builder\n  teamctl start builder",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Names = args
			return a.stop(cmd.Context(), in)
		},
	}
	cmd.Flags().DurationVar(&in.Wait, "wait", 10*time.Second, "maximum time for a member to answer and exit")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, sent to the members")
	return cmd
}

func newKill(a *app) *cobra.Command {
	in := team.StopRequest{Force: true, Remove: true}
	cmd := &cobra.Command{
		Use:   "kill MEMBER...",
		Short: "Kill members at once, and report where their work is",
		Long: `Kill members: SIGTERM to the whole process tree, then SIGKILL. Members are not asked,
so uncommitted work of a task stays uncommitted in the worktree; a checkpoint of it is
taken, and the result says where the work is. Claimed tasks return to the board, and
the member leaves the team. shutdown asks first; stop keeps the member (teamctl help
ending).`,
		Example:           "  teamctl kill builder\n  teamctl kill builder builder-2 --reason \"wrong branch\"",
		Args:              takes(1, -1, "the name of a member"),
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Names = args
			return a.stop(cmd.Context(), in)
		},
	}
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, recorded")
	cmd.Flags().Bool("force", true, "")
	_ = cmd.Flags().MarkHidden("force") // kill implies it; scripts may still pass it
	return cmd
}

// stop stops members and reports the outcome of each.
func (a *app) stop(ctx context.Context, in team.StopRequest) error {
	return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		if err := memberNames(ctx, t, in.Names); err != nil {
			return err
		}
		var killed []leftover
		if in.Force {
			killed = workOf(ctx, t, in.Names)
		}
		stopped, err := t.Stop(ctx, c, in)
		defer a.leftWork(ctx, t, c, killed)
		if stopped == nil {
			stopped = []team.Stopped{}
		}
		bad := notStopped(stopped)
		if err == nil {
			err = bad
		}
		if err != nil && a.out.format == formatJSON && len(stopped) > 0 {
			a.out.encode(map[string]any{"members": stopped, "error": errorBody(err)}, "  ")
			return team.Errorf(team.CodeOf(err), "%w", errSaid)
		}
		if err == nil || len(stopped) > 0 { // if nothing was requested, an empty list has no information
			a.stopped(stopped)
		}
		return err
	})
}

func (a *app) stopped(list []team.Stopped) {
	if a.out.value(map[string]any{"members": list}) {
		return
	}
	if len(list) == 0 {
		a.out.note("no member is running")
	}
	for _, s := range list {
		line := s.Name + ": " + outcomeText(s)
		for i, id := range s.Tasks {
			if i == 0 {
				line += "; back on the board: "
			} else {
				line += ", "
			}
			line += id
		}
		a.out.line("%s", printable(line))
	}
}

func outcomeText(s team.Stopped) string {
	text := map[string]string{
		team.StopApproved: "shut down", team.StopRejected: "rejected the request", team.StopDeadline: "ended at the deadline",
		team.StopForced: "ended by force", team.StopAlready: "already stopped", team.StopAlreadyLeft: "has left already", team.StopFailed: "could not be stopped",
	}[s.Outcome]
	if text == "" {
		text = s.Outcome
	}
	if s.Joined {
		text = joinedText(s)
	}
	if s.Exit != "" {
		text += " (" + s.Exit + ")"
	}
	if s.Reason != "" && (s.Outcome == team.StopRejected || s.Outcome == team.StopFailed) {
		text += ": " + s.Reason
	}
	return text
}

// joinedText reports what happened to a program that had joined the team.
func joinedText(s team.Stopped) string {
	switch s.Outcome {
	case team.StopApproved:
		return "left the team"
	case team.StopDeadline:
		return "did not answer; taken off the team, its process is its own"
	case team.StopForced:
		return "taken off the team, its process is its own"
	case team.StopRejected:
		return "rejected the request"
	}
	return "could not be taken off the team"
}

// notStopped is the error for members that are still running.
func notStopped(list []team.Stopped) error {
	for _, s := range list {
		switch s.Outcome {
		case team.StopRejected:
			return team.Errorf(team.CodeConflict, "%s rejected the shutdown: %s", s.Name, dash(s.Reason)).
				WithReason(team.ReasonShutdownRejected).WithHint(withoutAsking(s))
		case team.StopFailed:
			return team.Errorf(team.CodeInternal, "%s could not be stopped: %s", s.Name, dash(s.Reason)).
				WithHint("teamctl kill " + s.Name)
		}
	}
	return nil
}

func withoutAsking(s team.Stopped) string {
	if s.Joined {
		return "teamctl leave " + s.Name + " takes it off the team without asking"
	}
	return "teamctl kill " + s.Name + " ends it without asking"
}

func newStart(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "start [MEMBER...]",
		Short: "Start stopped members again, or all of them",
		Long: `Start members that are stopped or have failed; without names, all stopped ones. A
named member that has left the team comes back as it was spawned, to the worktree and
branch that it left.`,
		Example:           "  teamctl start\n  teamctl start builder",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.started(cmd.Context(), args, "started", (*tool.Team).Start)
		},
	}
}

func newRestart(a *app) *cobra.Command {
	var all, failed bool
	cmd := &cobra.Command{
		Use:   "restart MEMBER...",
		Short: "Stop and start members",
		Long: `Stop members gracefully and start them again, in the same worktree. Members that
have ended are started.`,
		Example:           "  teamctl restart builder builder-2\n  teamctl restart --failed",
		ValidArgsFunction: a.completeMembers(false),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all members that are not stopped")
	cmd.Flags().BoolVar(&failed, "failed", false, "all failed members")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case all && failed:
			return usage(cmd, "--all and --failed exclude each other")
		case (all || failed) && len(args) > 0:
			return usage(cmd, "names and --all or --failed exclude each other")
		case all || failed:
			return nil
		}
		return takes(1, -1, "the name of a member, or --all or --failed")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var set func(ledger.Member) bool
		switch {
		case all:
			set = func(m ledger.Member) bool { return m.Desired == team.WantRunning }
		case failed:
			set = func(m ledger.Member) bool { return m.Observed == team.Failed }
		}
		return a.startedOf(cmd.Context(), args, set, "restarted", (*tool.Team).Restart)
	}
	return cmd
}

func (a *app) started(ctx context.Context, names []string, verb string,
	do func(*tool.Team, context.Context, tool.Caller, []string) ([]tool.Ruled, error)) error {
	return a.startedOf(ctx, names, nil, verb, do)
}

// startedOf restricts started to the members in set, unless set is nil.
func (a *app) startedOf(ctx context.Context, names []string, set func(ledger.Member) bool, verb string,
	do func(*tool.Team, context.Context, tool.Caller, []string) ([]tool.Ruled, error)) error {
	return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		if err := memberNames(ctx, t, names); err != nil {
			return err
		}
		roster, err := t.Ledger.Members(ctx, false)
		if err != nil {
			return err
		}
		for _, m := range roster {
			if set != nil && m.Name != team.LeadName && !team.KindOf(m.Spec.Agent).External && set(m) {
				names = append(names, m.Name)
			}
		}
		var members []tool.Ruled
		if set == nil || len(names) > 0 {
			if members, err = do(t, ctx, c, names); err != nil {
				return err
			}
		} else if !a.out.json {
			a.out.note("no such member")
		}
		if members == nil {
			members = []tool.Ruled{}
		}
		if a.out.value(map[string]any{"members": members}) {
			return nil
		}
		for _, m := range members {
			if m.Outcome != verb {
				a.out.line("%s is %s already", m.Name, strings.TrimPrefix(m.Outcome, tool.Already))
				continue
			}
			a.out.line("%s %s: %s", verb, m.Name, m.Observed)
		}
		return nil
	})
}

func newCapture(a *app) *cobra.Command {
	var lines int
	cmd := &cobra.Command{
		Use:   "capture MEMBER",
		Short: "Print the current screen of a member",
		Example: `  teamctl capture builder
  teamctl capture builder --scrollback 500`,
		Args:              takes(1, 1, "the name of a member"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				if err := memberNames(cmd.Context(), t, args); err != nil {
					return err
				}
				text, err := t.Capture(cmd.Context(), args[0], lines)
				if err != nil {
					return err
				}
				if a.out.value(map[string]any{"member": args[0], "text": text}) {
					return nil
				}
				a.out.text(plain.Text(text))
				return nil
			})
		},
	}
	cmd.Flags().IntVar(&lines, "scrollback", 0, "also print this many lines of history above the screen")
	return cmd
}

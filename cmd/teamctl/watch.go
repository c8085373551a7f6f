package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
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

func newEvents(a *app) *cobra.Command {
	var (
		follow bool
		after  int64
		limit  int
		filter ledger.EventFilter
	)
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show events; -f follows them",
		Long: `Show the team's log: every change of a task, a member or a message, by whom and when.
--json writes one event per line.`,
		Example: `  teamctl events --limit 20
  teamctl events -f
  teamctl events --what task. --who builder --json`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
				list, err := t.Ledger.Events(ctx, after, 0, filter)
				if err != nil {
					return err
				}
				if len(list) == 0 { // a ledger may have kinds of another version
					if err := eventKind(filter.What); err != nil {
						return err
					}
				}
				if len(list) > 0 {
					after = max(after, list[len(list)-1].Seq)
				}
				if limit > 0 && len(list) > limit {
					list = list[len(list)-limit:]
				}
				for _, e := range list {
					a.event(e)
				}
				if !follow {
					return nil
				}
				err = t.Follow(ctx, after, func(e ledger.Event) error {
					if wanted(e, filter) {
						a.event(e)
					}
					return a.out.failure()
				})
				return err
			})
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "continue until interrupted")
	f.Int64Var(&after, "after", 0, "only events after this sequence number")
	f.IntVar(&limit, "limit", 0, "only the newest N (default all)")
	f.StringVar(&filter.Who, "who", "", "only changes by this member")
	f.StringVar(&filter.What, "what", "", "only this kind: task.failed, or task. for all of tasks")
	a.complete(cmd, "who", a.completeMembers(true))
	return cmd
}

// eventKind refuses a kind of event, or the beginning of one up to a point, that there is none of.
func eventKind(what string) error {
	var names []string
	for _, w := range team.Events() {
		if what == "" || w.Name == what || strings.HasSuffix(what, ".") && strings.HasPrefix(w.Name, what) {
			return nil
		}
		names = append(names, w.Name)
	}
	err := team.Errorf(team.CodeInvalid, "unknown kind of event %q", what).WithReason(team.ReasonInput)
	if near := team.Closest(what, names); near != "" {
		return err.WithHint("did you mean: teamctl events --what " + near)
	}
	return err.WithHint("give a kind that teamctl events shows, such as task.failed, or task. for all of tasks")
}

// wanted applies the ledger's filter to a followed event.
func wanted(e ledger.Event, f ledger.EventFilter) bool {
	what := f.What == "" || e.What == f.What ||
		f.What[len(f.What)-1] == '.' && len(e.What) > len(f.What) && e.What[:len(f.What)] == f.What
	return what && (f.Who == "" || e.Who == f.Who)
}

func (a *app) event(e ledger.Event) {
	if !a.out.item(e) {
		a.out.line("%s", a.eventLine(e))
	}
}

func (a *app) eventLine(e ledger.Event) string {
	who := view.Clean(view.By(e.Who, e.Via))
	line := a.out.style.Dim(time.UnixMilli(e.At).Format("2006-01-02 15:04:05.000")) + "  " +
		view.Pad(who, max(12, view.Width(who))) + "  " + view.Pad(view.Clean(e.What), 18)
	if e.ID != "" {
		line += "  " + view.Clean(e.ID)
	}
	if e.Before != e.After {
		line += "  " + view.Clean(dash(e.Before)) + " -> " + view.Clean(dash(e.After))
	}
	return line
}

// clock is the local time of day of an RFC 3339 timestamp.
func clock(stamp string) string {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return view.Clean(stamp)
	}
	return t.Local().Format("01-02 15:04:05")
}

func newWait(a *app) *cobra.Command {
	var (
		in       tool.WaitIn
		other    awaited
		progress bool
	)
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait until all tasks have ended",
		Long: `Wait until every task, or every one named with --task, is completed or failed or stuck
behind a failed one. The exit status is 0 only if all of them completed, 1 if one
failed, 8 after --timeout, and 7 if no member is left that could do them.

--progress shows the progress: a live view on a terminal, otherwise one line per
change.

With --member it waits until that member is ready, or in --state; with --mail until
there is mail for you. Both stop after two minutes unless --timeout is given (0 is no
limit). The exit status is 4 if the member will not reach the state.`,
		Example: `  teamctl wait --progress
  teamctl wait --task 3 --task 4 --timeout 10m
  teamctl wait --member builder --state idle
  teamctl wait --mail --timeout 30s`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for i, id := range in.Tasks {
				in.Tasks[i] = taskID(id)
			}
			if in.Timeout < 0 {
				return usage(cmd, "--timeout must not be negative")
			}
			if err := other.check(cmd); err != nil {
				return err
			}
			if !other.tasks() && !cmd.Flags().Changed("timeout") {
				in.Timeout = activityWait
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if !other.tasks() {
					return a.await(cmd.Context(), t, c, other, in.Timeout)
				}
				return a.wait(cmd.Context(), t, in, progress)
			})
		},
	}
	cmd.Flags().StringSliceVar(&in.Tasks, "task", nil, "wait only for these tasks: 1,2")
	cmd.Flags().DurationVar(&in.Timeout, "timeout", 0, "maximum time to wait: 90s, 20m (default: no limit; with --member and --mail 2m)")
	cmd.Flags().BoolVar(&progress, "progress", false, "show progress")
	other.flags(cmd, a)
	a.complete(cmd, "task", a.completeTasks(ledger.TaskFilter{OpenOnly: true}))
	return cmd
}

func (a *app) wait(ctx context.Context, t *tool.Team, in tool.WaitIn, progress bool) error {
	var shown *tui.Progress
	if progress && !a.out.json {
		shown = tui.NewProgress(a.out.stdout, tui.Options{
			Terminal: a.out.screen != nil, Color: a.out.style.On, Size: a.out.size,
		})
		in.Each = func(p tool.Progress) { shown.Update(look.Progress(t.Layout.Key, p)) }
	}
	last, err := t.Wait(ctx, in)
	if shown != nil {
		shown.Close()
	}
	if err != nil {
		return err
	}
	if !a.out.value(last) && !progress {
		a.out.line("%d of %d tasks completed", last.Counts.Completed, last.Counts.Total())
	}
	return a.workHint(ctx, t)
}

func newBoard(a *app) *cobra.Command {
	var pane bool
	cmd := &cobra.Command{
		Use:   "board",
		Short: "Watch members, tasks and events on a full screen",
		Long: `Watch the team: what waits for you, its members and their activity, its tasks, the
newest events. In a terminal this is teamctl ui --view team. If stdout is not a
terminal it prints the board once.`,
		Example: "  teamctl board\n  teamctl board --team demo",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.atTerminal() {
				return a.screen(cmd.Context(), screenFlags{view: "team", pane: pane})
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error { return a.printBoard(cmd.Context(), t) })
		},
	}
	cmd.Flags().BoolVar(&pane, "pane", false, "run in the team's own tmux session: q detaches, and the board keeps running")
	_ = cmd.Flags().MarkHidden("pane")
	return cmd
}

// boardTasks is how many tasks that are not in progress are read for a summary of a team.
const boardTasks = 100

// printBoard prints the board once.
func (a *app) printBoard(ctx context.Context, t *tool.Team) error {
	s, err := look.Snapshot(ctx, t)
	if err != nil || a.out.value(s) {
		return err
	}
	a.showBoard(s)
	return nil
}

// showBoard prints the board once.
func (a *app) showBoard(s view.Snapshot) {
	cols := 100
	if a.out.screen != nil {
		cols, _ = a.out.size()
	}
	for _, l := range tui.Board(s, cols, time.Now(), a.out.style) {
		a.out.line("%s", l)
	}
}

// detachClient detaches the client of tmux that was used last in the session of this
// process.
func detachClient(ctx context.Context) error {
	if os.Getenv("TMUX") == "" {
		return errors.New("not inside tmux")
	}
	return exec.CommandContext(ctx, "tmux", "detach-client").Run()
}

// expandInTmux returns the expansion of a format in the tmux that this process is in.
func expandInTmux(ctx context.Context, format string) (string, error) {
	args := []string{"display-message", "-p"}
	if pane := os.Getenv("TMUX_PANE"); pane != "" {
		args = append(args, "-t", pane)
	}
	out, err := exec.CommandContext(ctx, "tmux", append(args, format)...).Output()
	return string(out), err
}

// attendedAgain is the first pause of a screen after a supervisor could not be started, attendedMost
// the longest: a screen of a team that was deleted leaves the machine at rest.
const (
	attendedAgain = 10 * time.Second
	attendedMost  = 5 * time.Minute
)

// keepAttended keeps the team's supervisor running until stop is called. A failure does not end
// the display of the team: it retries.
func keepAttended(ctx context.Context, t *tool.Team) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := time.Duration(0); ctx.Err() == nil; {
			began := time.Now()
			attended, leave := t.Kept(ctx)
			<-attended.Done()
			err := attended.Err()
			leave(&err)
			wait = attendPause(wait, time.Since(began))
			pause := time.NewTimer(wait)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// attendPause returns the pause after a team was attended for so long; last is the pause before that.
func attendPause(last, attended time.Duration) time.Duration {
	if last == 0 || attended > attendedMost {
		return attendedAgain
	}
	return min(2*last, attendedMost)
}

// after is a timer; one of 0 never comes.
func after(d time.Duration) (<-chan time.Time, func()) {
	if d <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/tui"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
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
		Short: "Show what happened; -f keeps showing",
		Long: `Show the team's log: every change of a task, a member or a message, who made it
and when. --json writes one event per line.`,
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
					return a.out.failed
				})
				return err
			})
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on until interrupted")
	f.Int64Var(&after, "after", 0, "only events after this sequence number")
	f.IntVar(&limit, "limit", 0, "the newest so many (default all)")
	f.StringVar(&filter.Who, "who", "", "only what this member did")
	f.StringVar(&filter.What, "what", "", "only this kind: task.failed, or task. for all of tasks")
	a.complete(cmd, "who", a.completeMembers(true))
	return cmd
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
	line := a.out.style.Dim(time.UnixMilli(e.At).Format("2006-01-02 15:04:05.000")) + "  " +
		tui.Pad(tui.Clean(e.Who), 12) + "  " + tui.Pad(tui.Clean(e.What), 18)
	if e.ID != "" {
		line += "  " + tui.Clean(e.ID)
	}
	if e.Before != "" || e.After != "" {
		line += "  " + tui.Clean(dash(e.Before)) + " -> " + tui.Clean(dash(e.After))
	}
	return line
}

// clock is the local time of day of an RFC 3339 timestamp.
func clock(stamp string) string {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return tui.Clean(stamp)
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
		Long: `Wait until every task, or every one named with --task, is completed or failed or
stuck behind a failed one. The exit status is 0 only if all of them completed, 1 if
one failed, 8 after --timeout, and 7 if nobody is left who could do them.

--progress shows what goes on: a live view on a terminal, one line per change
elsewhere.

With --member it waits until that one is ready, or in --state; with --mail until
there is mail for you. Both give up after two minutes unless --timeout says
otherwise (0 is never). The exit status is 4 if the member will not come to it.`,
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
	cmd.Flags().StringSliceVar(&in.Tasks, "task", nil, "wait for these tasks only: 1,2")
	cmd.Flags().DurationVar(&in.Timeout, "timeout", 0, "give up after so long: 90s, 20m (default never; of --member and --mail 2m)")
	cmd.Flags().BoolVar(&progress, "progress", false, "show what goes on")
	other.flags(cmd, a)
	a.complete(cmd, "task", a.completeTasks(ledger.TaskFilter{OpenOnly: true}))
	return cmd
}

func (a *app) wait(ctx context.Context, t *tool.Team, in tool.WaitIn, progress bool) error {
	var view *tui.Progress
	if progress && !a.out.json {
		view = tui.NewProgress(a.out.stdout, tui.Options{
			Terminal: a.out.screen != nil, Color: a.out.style.On, Size: a.out.size,
		})
		in.Each = func(p tool.Progress) { view.Update(snapshot(t.Layout.Key, "", p, nil)) }
	}
	last, err := t.Wait(ctx, in)
	if view != nil {
		view.Close()
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
	cmd := &cobra.Command{
		Use:   "board",
		Short: "Watch members, tasks and events on a full screen",
		Long: `Watch the team: its members and what they do, its tasks, the newest events. It
only shows, and it draws only when something changes. q leaves it. Where stdout is
no terminal it prints the board once.`,
		Example: "  teamctl board\n  teamctl board --team demo",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				return a.board(cmd.Context(), t)
			})
		},
	}
	return cmd
}

const (
	// boardPause is the shortest time between two readings for the board.
	boardPause = 200 * time.Millisecond
	// boardTasks is how many of the tasks that nobody works on are read for the screen at
	// least: more than most have lines, so that one that grows has something to show.
	boardTasks = 100
	// boardEvents is how many of the newest events are read.
	boardEvents = 50
)

func (a *app) board(ctx context.Context, t *tool.Team) error {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return err
	}
	in, ok := a.stdin.(*os.File)
	if a.out.json || a.out.screen == nil || !ok || !term.IsTerminal(int(in.Fd())) {
		p, err := t.Progress(ctx)
		if err != nil {
			return err
		}
		events, err := lastEvents(ctx, t, boardEvents)
		if err != nil {
			return err
		}
		s := snapshot(row.Name, row.Repo, p, events)
		stalledIn(&s, t.Layout, p.Members, time.Now())
		if a.out.value(s) {
			return nil
		}
		for _, l := range tui.Board(s, 100, 0, time.Now(), tui.Style{}) {
			a.out.line("%s", l)
		}
		return nil
	}
	var due time.Duration // when to look again though nothing has changed; 0: never
	read := func(ctx context.Context) (s tui.Snapshot, err error) {
		_, rows := a.out.size()
		s, due, err = liveBoard(ctx, t, row, max(rows, boardTasks))
		return s, err
	}
	screen := &tui.Screen{In: in, Out: a.out.screen, Color: a.out.style.On}
	err = screen.Run(ctx, func(ctx context.Context, each func(tui.Snapshot)) error {
		if a.origin(t.Layout) == control.FromPerson { // the one in the lead's pane is part of the team
			defer keepAttended(ctx, t)()
		}
		changes, stop, err := t.Ledger.Changes(ctx)
		if err != nil {
			return err
		}
		defer stop()
		for {
			s, err := read(ctx)
			if err != nil {
				return err
			}
			each(s)
			// However busy the team is, a person reads no faster.
			select {
			case <-time.After(boardPause):
			case <-ctx.Done():
				return nil
			}
			again, forget := after(due)
			select {
			case <-changes:
			case <-again:
			case <-ctx.Done():
			}
			forget()
			if ctx.Err() != nil {
				return nil
			}
		}
	})
	if err != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// attendedAgain is the pause of a screen after a supervisor did not answer or could not be
// started.
const attendedAgain = 10 * time.Second

// keepAttended keeps the team's supervisor up until stop is called. What shows the team
// does not end when that fails: it is tried again.
func keepAttended(ctx context.Context, t *tool.Team) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			attended, leave := t.Attended(ctx)
			<-attended.Done()
			err := attended.Err()
			leave(&err)
			pause := time.NewTimer(attendedAgain)
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

// liveBoard reads what a screen can show: every change of a long board must not make
// it read and sort the whole. due is when to look again though nothing changes.
func liveBoard(ctx context.Context, t *tool.Team, row ledger.TeamRow, tasks int) (s tui.Snapshot, due time.Duration, err error) {
	b, err := t.Ledger.Board(ctx, tasks)
	if err != nil {
		return s, 0, err
	}
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return s, 0, err
	}
	events, err := lastEvents(ctx, t, boardEvents)
	if err != nil {
		return s, 0, err
	}
	s = screenful(row.Name, row.Repo, b.Tasks, b.Stuck, members, events)
	s.Whole = numbers(b)
	return s, stalledIn(&s, t.Layout, members, time.Now()), nil
}

// numbers are those of the whole board, as tui would count them.
func numbers(b ledger.Board) *tui.Counts {
	c := b.Counts
	return &tui.Counts{
		Done: c.Completed, Failed: c.Failed, Active: c.Claimed + c.InProgress, Ready: b.Free,
		Waiting: c.Pending - b.Free - c.Stuck, Stuck: c.Stuck, Total: c.Total(),
	}
}

// stalledIn says in a board who of its members has stalled, and when to look again.
func stalledIn(s *tui.Snapshot, l team.Layout, members []ledger.Member, now time.Time) (due time.Duration) {
	for i, m := range members {
		s.Members[i].StalledSince = tool.Stalled(l, m, now)
	}
	return tool.StallDue(l, members, now)
}

// after is a timer; one of 0 never comes.
func after(d time.Duration) (<-chan time.Time, func()) {
	if d <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// lastEvents are the newest n events, in order. A message or a member's heartbeat
// is an event too, so it reads from the end.
func lastEvents(ctx context.Context, t *tool.Team, n int64) ([]ledger.Event, error) {
	last, err := t.Ledger.LastEvent(ctx)
	if err != nil {
		return nil, err
	}
	return t.Ledger.Events(ctx, max(0, last-n), 0, ledger.EventFilter{})
}

// snapshot is the board as tui draws it.
func snapshot(name, repo string, p tool.Progress, events []ledger.Event) tui.Snapshot {
	if p.Part != nil {
		s := screenful(name, repo, p.Tasks, p.Part.Stuck, p.Members, events)
		s.Whole = numbers(*p.Part)
		return s
	}
	return screenful(name, repo, p.Tasks, stuckTasks(p.Tasks), p.Members, events)
}

func screenful(name, repo string, tasks []ledger.Task, stuck map[string]bool, members []ledger.Member, events []ledger.Event) tui.Snapshot {
	s := tui.Snapshot{Team: name, Repo: repo, Tasks: []tui.Task{}, Members: []tui.Member{}, Events: []tui.Event{}}
	for _, t := range tasks {
		s.Tasks = append(s.Tasks, viewTask(t, stuck))
	}
	for _, m := range members {
		s.Members = append(s.Members, tui.Member{
			Name: m.Name, Color: m.Color, Lead: m.Name == team.LeadName, State: m.Observed, Activity: m.Activity,
			Since: stamp(sinceOf(m)), Restarts: m.Restarts, Note: why(m),
			Paused: paused(m), Plan: m.Name != team.LeadName && m.Spec.Mode == team.ModePlan,
		})
	}
	for _, e := range events {
		if e.What == team.EventMemberActivity || e.What == team.EventMessageMailed {
			continue // the roster shows the one, the other follows every message
		}
		note := ""
		if e.After != "" {
			note = e.After
		}
		s.Events = append(s.Events, tui.Event{At: stamp(e.At), Who: e.Who, What: e.What, ID: shortID(e.ID), Note: note})
	}
	return s
}

// shortID is an id for people: of a uuid the first block is enough.
func shortID(id string) string {
	if len(id) == 36 && id[8] == '-' {
		return id[:8]
	}
	return id
}

func viewTask(t ledger.Task, stuck map[string]bool) tui.Task {
	v := tui.Task{
		ID: t.ID, Subject: t.Subject, Status: t.Status, Owner: t.OwnerName, Waits: t.BlockedBy,
		Stuck: stuck[t.ID], Attempt: t.Attempt, Began: stamp(t.StartedAt), Ended: stamp(t.CompletedAt),
	}
	if v.Began.IsZero() {
		v.Began = stamp(t.ClaimedAt)
	}
	if t.ActiveForm != "" && v.Active() {
		v.Subject = t.ActiveForm
	}
	if t.Status == team.TaskFailed && t.Result != nil {
		v.Note = failure(*t.Result)
	}
	if v.Active() {
		v.Note = handedIn(t)
	}
	return v
}

// stuckTasks are the pending tasks that wait, directly or not, for a failed one.
func stuckTasks(tasks []ledger.Task) map[string]bool {
	byID := make(map[string]ledger.Task, len(tasks))
	for _, t := range tasks {
		byID[t.ID] = t
	}
	memo := map[string]bool{}
	var visit func(ledger.Task) bool
	visit = func(t ledger.Task) bool {
		if known, ok := memo[t.ID]; ok {
			return known
		}
		memo[t.ID] = false
		for _, id := range t.BlockedBy {
			dep := byID[id]
			if dep.Status == team.TaskFailed || dep.Status == team.TaskPending && visit(dep) {
				memo[t.ID] = true
				break
			}
		}
		return memo[t.ID]
	}
	for _, t := range tasks {
		if t.Status == team.TaskPending {
			visit(t)
		}
	}
	return memo
}

func stamp(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

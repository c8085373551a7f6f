package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
)

// watch: what one change costs those who watch, by the length of the board.
var watch = benchmark{name: "watch", title: "Watching a long board", run: runWatch, note: watchNote}

const watchNote = "A change is a claim and its release, every 400 ms, which each watcher looks at once or twice. Half of the tasks are completed, the " +
	"other half is ready and has no command, so that the worker stays idle and looks too. What is drawn is the same on both boards, but for " +
	"the width of the numbers."

const goalWatch = 1.2

func runWatch(ctx context.Context, e env) (_ string, err error) {
	rounds, changes, sizes := max(e.rounds/8, 5), 25, []int{100, 100_000}
	if e.quick {
		rounds, changes = 3, 15
	}
	watched := []struct {
		what string
		args []string
	}{{"board", []string{"board"}}, {"wait --progress", []string{"wait", "--progress"}}, {"wait", []string{"wait"}}, {"ps --watch", []string{"ps", "--watch"}},
		{"status --watch", []string{"status", "--watch"}}}
	type line struct {
		*crew
		pids [][]int
		took [][]float64 // ms of processor for a change, by watcher
	}
	var lines []*line
	defer func() {
		for _, l := range lines {
			err = errors.Join(err, l.close(ctx))
		}
	}()
	for i, n := range sizes {
		c, err := newCrew(ctx, e, fmt.Sprint("b", i), func(w *world) error { return errors.Join(w.tasks(ctx, n), w.half(ctx)) })
		if err != nil {
			return "", err
		}
		l := &line{crew: c, pids: [][]int{c.pids[:1], c.pids[1:]}}
		lines = append(lines, l)
		if _, err := c.more(ctx, 1, idleAgent); err != nil { // takes tasks without a command, so that wait waits
			return "", err
		}
		for _, w := range watched {
			p, err := c.watch(ctx, w.args...)
			if err != nil {
				return "", err
			}
			l.pids = append(l.pids, []int{p.cmd.Process.Pid})
		}
		l.took = make([][]float64, len(l.pids))
	}
	if err := pause.For(ctx, 3*time.Second); err != nil { // their first looks
		return "", err
	}
	for r := range rounds + 1 { // the first warms up
		for i := range lines {
			l := lines[(i+r)%len(lines)]
			before, err := each(l.pids)
			if err != nil {
				return "", err
			}
			if err := l.changes(ctx, changes); err != nil {
				return "", err
			}
			after, err := each(l.pids)
			if err != nil {
				return "", err
			}
			for k := range after {
				if r > 0 {
					l.took[k] = append(l.took[k], millis(after[k]-before[k])/float64(changes))
				}
			}
		}
	}
	var figures []figure
	for k := range lines[0].pids {
		what := "the supervisor"
		switch {
		case k == 1:
			what = "an idle worker"
		case k > 1:
			what = watched[k-2].what
		}
		figures = append(figures, figure{fmt.Sprintf("%s, %d tasks", what, sizes[1]), fmt.Sprint(sizes[0], " tasks"),
			middle(lines[0].took[k]), middle(lines[1].took[k]), "ms", ratioAtMost(goalWatch)})
	}
	return table(rounds, fmt.Sprintf("Processor time for a change; %d changes a round.", changes), figures), nil
}

// each is the processor time of groups of processes.
func each(groups [][]int) ([]time.Duration, error) {
	out := make([]time.Duration, len(groups))
	for i, pids := range groups {
		var err error
		if out[i], err = busy(pids); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// changes claims a task and releases it, n times.
func (c *crew) changes(ctx context.Context, n int) error {
	for range n {
		task, err := c.led.Claim(ctx, ledger.ClaimIn{Owner: memberSession(0), Lease: time.Hour})
		if err == nil && task == nil {
			err = errors.New("the board is empty")
		}
		if err != nil {
			return err
		}
		if err := c.led.Release(ctx, ledger.TaskRef{ID: task.ID, Owner: task.Owner, Attempt: task.Attempt}); err != nil {
			return err
		}
		if err := pause.For(ctx, 400*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// half completes every other task, while nobody else has the ledger open.
func (w *world) half(ctx context.Context) (err error) {
	db, err := sql.Open("sqlite3", "file:"+w.layout.Ledger()+"?mode=rw&_synchronous=OFF&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `UPDATE tasks SET status = 'completed', owner = ?1, ownerName = ?2, completedAt = ?3, attempt = 1 WHERE seq % 2 = 0`,
		memberSession(0), memberName(0), time.Now().UnixMilli())
	return err
}

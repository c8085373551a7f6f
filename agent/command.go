package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const (
	killGrace = 5 * time.Second // default of Env.Grace
	// signalGrace is how long a command that was ended by a signal waits for the end of ctx: a stop
	// signals the whole tree, and then the command did not fail.
	signalGrace = 500 * time.Millisecond
	// checkEvery is the minimum time between two checks that the task is still ours.
	checkEvery = 250 * time.Millisecond
	renewEvery = ledger.Lease / 4
)

// ending is how a command ended.
type ending int

const (
	byItself ending = iota
	byTimeout
	byContext // ctx ended
	byLoss    // the task was taken away
	byError   // the command could not be started
)

// ran is the result of a command.
type ran struct {
	how  ending
	code int    // exit status; 128 + n for signal n, 124 for the timeout, 127 when it could not start
	sig  string // name of the signal that ended it
	tail string
	err  error // of byError, or why the task was lost
}

// ok reports success.
func (r ran) ok() bool { return r.how == byItself && r.code == 0 }

// why describes how it ended.
func (r ran) why(limit time.Duration) string {
	switch r.how {
	case byError:
		return r.err.Error()
	case byContext:
		return "the worker was stopped"
	case byLoss:
		return "the task was taken away"
	case byItself, byTimeout:
	}
	return run.Ended{Code: r.code, Signal: r.sig, Late: r.how == byTimeout}.Why(limit)
}

// Kinds of a worker's commands, for those who inspect running commands.
const (
	ofTask   = run.Task
	ofVerify = run.Verify
)

// command runs script and returns when no process of it is left. Meanwhile it renews the lease of
// the task and checks changes of the ledger.
func (w *worker) command(ctx context.Context, t ledger.Task, kind, script string, limit time.Duration) ran {
	scope, err := w.env.Commands.Open(kind, w.env.Dir)
	if err != nil {
		return ran{how: byError, code: 127, err: err}
	}
	ours, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watched sync.WaitGroup
	watched.Go(func() {
		if lost := w.watch(ours, t); lost != nil {
			cancel(lost)
		}
	})
	var end tail
	out := io.MultiWriter(w.out, &end)
	ended, err := scope.Run(ours, run.Cmd{
		Command: script, Dir: w.env.Dir, Env: w.environ(t), Stdout: out, Stderr: out, Limit: limit, Grace: w.env.Grace,
	})
	lost := context.Cause(ours)
	cancel(nil)
	watched.Wait()
	if err = errors.Join(err, scope.Close()); err != nil {
		w.out.line("a process of the command cannot be ended: %v", err)
	}

	res := ran{code: ended.Code, sig: ended.Signal, tail: end.text()}
	switch {
	case ended.Err != nil:
		res.how, res.code, res.err = byError, 127, fmt.Errorf("start bash: %w", ended.Err)
	case ended.Late:
		res.how = byTimeout
	case ended.Cut && ctx.Err() != nil:
		res.how = byContext
	case ended.Cut:
		res.how, res.err = byLoss, lost
	case ended.Signal != "" || ended.Code > 128 && ended.Code < 160:
		if within(ctx.Done(), signalGrace) {
			res.how = byContext
		}
	}
	return res
}

// watch renews the lease while a command runs, until ctx ends; an error says that the task is no
// longer ours.
func (w *worker) watch(ctx context.Context, t ledger.Task) error {
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	var due <-chan time.Time // time of a check postponed by checkEvery
	changes, last := w.changes, time.Time{}
	look := func() error {
		last, due = time.Now(), nil
		return w.stillOurs(ctx, t)
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-changes:
			if !ok {
				changes = nil // the loop notices that after the task
				continue
			}
			if d := checkEvery - time.Since(last); d > 0 {
				if due == nil {
					due = time.After(d)
				}
				continue
			}
			err = look()
		case <-due:
			err = look()
		case <-renew.C:
			// Without a supervisor nothing else renews it. stillOurs reports a failure.
			c, cancel := context.WithTimeout(ctx, writeLimit)
			_, _ = w.env.Ledger.RenewLeases(c, []string{w.id.Session}, ledger.Lease)
			cancel()
			err = look()
		}
		if err != nil {
			return err
		}
	}
}

// errEnded reports a task that was cancelled while its command was running.
var errEnded = errors.New("the task is ended")

// stillOurs returns an error if the ledger says that the task is no longer ours. A failed read is
// no such evidence.
func (w *worker) stillOurs(ctx context.Context, t ledger.Task) error {
	now, err := w.env.Ledger.Task(ctx, t.ID)
	switch {
	case team.IsCode(err, team.CodeNotFound):
		return fmt.Errorf("task %s was deleted", t.ID)
	case err != nil:
		return nil // see above
	case now.Status == team.TaskFailed && now.Attempt == t.Attempt && now.Result != nil: // a cancelled task has no owner
		return fmt.Errorf("%w: %s", errEnded, firstLine(now.Result.Error))
	case now.Owner != w.id.Session || now.Attempt != t.Attempt:
		return fmt.Errorf("task %s is no longer ours", t.ID)
	case now.Status != team.TaskClaimed && now.Status != team.TaskInProgress:
		return fmt.Errorf("task %s is %s", t.ID, now.Status)
	}
	return nil
}

// environ returns the environment of a task's commands. The last value of a repeated name counts
// (os/exec).
func (w *worker) environ(t ledger.Task) []string {
	env := append([]string(nil), w.env.Environ...)
	env = append(env,
		team.EnvTeam+"="+w.id.Team,
		team.EnvAgentID+"="+w.id.AgentID,
		team.EnvAgentName+"="+w.id.Name,
		team.EnvTaskID+"="+t.ID,
		team.EnvAttempt+"="+strconv.Itoa(t.Attempt),
	)
	if w.env.Dir != "" {
		env = append(env, "PWD="+w.env.Dir)
	}
	return env
}

// within reports whether c is closed within d.
func within(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
	}
	select {
	case <-c: // as well, if this process did not run
		return true
	default:
		return false
	}
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	creack "github.com/creack/pty"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// crew is a team whose processes are measured one by one: the supervisor, a built-in
// worker, and commands that watch.
type crew struct {
	*supervised
	led     *ledger.Ledger
	closeDB func() error
	watches []*watching
	pids    []int // of the supervisor and the worker
	lead    string
}

// watching is a command on a terminal that nobody reads.
type watching struct {
	cmd  *exec.Cmd
	done chan struct{}
	end  func() error
}

// newCrew makes a team with one member that never runs; before is called when the team has
// no supervisor yet.
func newCrew(ctx context.Context, e env, dir string, before func(*world) error) (_ *crew, err error) {
	w, err := newWorld(ctx, e, dir, 1)
	if err != nil {
		return nil, err
	}
	if err := before(w); err != nil {
		return nil, err
	}
	c := &crew{supervised: &supervised{world: w, kind: pty.Name, client: control.NewClient(w.layout.Socket())}}
	if c.led, c.closeDB, err = w.open(ctx, false); err != nil {
		return nil, err
	}
	m, err := c.led.Member(ctx, team.LeadName)
	if err != nil {
		return nil, errors.Join(err, c.closeDB())
	}
	c.lead = m.SessionKey
	if _, err := c.begin(ctx); err != nil {
		return nil, errors.Join(err, c.closeDB())
	}
	c.pids = []int{c.cmd.Process.Pid}
	if err := c.worker(ctx); err != nil {
		return nil, errors.Join(err, c.close(ctx))
	}
	return c, nil
}

// worker starts the built-in worker and returns when it is idle.
func (c *crew) worker(ctx context.Context) error {
	const name = "w"
	_, err := c.client.Spawn(ctx, team.SpawnRequest{Name: name, Exact: true, Spec: team.MemberSpec{
		Agent: "worker", Backend: c.kind, Restart: team.RestartNever, WorktreeMode: "none", Cwd: c.layout.Dir}})
	if err != nil {
		return err
	}
	c.names = append(c.names, name)
	if err := c.idle(ctx); err != nil {
		return err
	}
	p, err := bundle.ReadProc(c.layout.Bundle(name), "")
	c.pids = append(c.pids, p.Agent.PID)
	return err
}

// idle returns when the worker has said that it is.
func (c *crew) idle(ctx context.Context) error {
	return eventually(ctx, "the worker is not idle", func() (bool, error) {
		m, err := c.led.Member(ctx, "w")
		return m.Ready && m.Activity == team.Idle, err
	})
}

// eventually asks until something is so.
func eventually(ctx context.Context, what string, so func() (bool, error)) error {
	for deadline := time.Now().Add(2 * time.Minute); ; {
		ok, err := so()
		if err != nil || ok {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New(what)
		}
		if err := pause.For(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// task has the worker run a small task, and returns when it is idle again.
func (c *crew) task(ctx context.Context) error {
	made, err := c.led.CreateTasks(ctx, []ledger.NewTask{smallTask}, team.LeadName)
	if err != nil {
		return err
	}
	err = eventually(ctx, "a task is not completed", func() (bool, error) {
		t, err := c.led.Task(ctx, made[0].ID)
		return t.Status == team.TaskCompleted, err
	})
	return errors.Join(err, c.idle(ctx))
}

var smallTask = ledger.NewTask{Subject: "a small task", Metadata: []byte(`{"run":"true"}`)}

// busy is the processor time that processes have taken.
func busy(pids []int) (time.Duration, error) {
	a, err := activityOf(pids)
	return a.busy, err
}

// settled returns when the supervisor and the worker rest.
func (c *crew) settled(ctx context.Context) error {
	last, err := busy(c.pids)
	if err != nil {
		return err
	}
	for range 200 {
		if err := pause.For(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		now, err := busy(c.pids)
		if err != nil || now-last < time.Millisecond/2 {
			return err
		}
		last = now
	}
	return errors.New("the supervisor does not rest")
}

// watch starts a command of teamctl on a terminal of 120 by 40.
func (c *crew) watch(ctx context.Context, args ...string) (*watching, error) {
	cmd := exec.CommandContext(ctx, c.bin, append(args, "--team", c.layout.Key)...)
	cmd.Env = append(noTmux(c.env), "TERM=xterm-256color")
	t, err := creack.StartWithSize(cmd, &creack.Winsize{Cols: 120, Rows: 40})
	if err != nil {
		return nil, err
	}
	w := &watching{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		_, _ = io.Copy(io.Discard, t) // ends with the command
	}()
	w.end = func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		err := t.Close()
		<-w.done
		return err
	}
	c.watches = append(c.watches, w)
	return w, nil
}

// close ends everything.
func (c *crew) close(ctx context.Context) error {
	var errs []error
	for _, w := range c.watches {
		errs = append(errs, w.end())
	}
	return errors.Join(append(errs, c.end(ctx), c.closeDB())...)
}

const (
	sqlFillMail = `INSERT INTO messages(id, run, kind, fromAgent, toAgent, text, summary, at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		SELECT printf('00000000-0000-4000-8000-%012d', i), 1, 'info', 'm0', 'team-lead', 'message ' || i || ' of the past', 'a message', ?2 FROM n`
	sqlFillSent = `INSERT INTO deliveries(message, recipient, session, seq, rank, state, evidence, at)
		SELECT id, 'team-lead', ?1, seq, 2, 'mailed', 'in the mailbox file', at FROM messages`
)

// unread puts n messages into the lead's mailbox that the lead has not read, while nobody
// else has the ledger open.
func (w *world) unread(ctx context.Context, n int) (err error) {
	db, err := sql.Open("sqlite3", "file:"+w.layout.Ledger()+"?mode=rw&_synchronous=OFF&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var lead string
	if err := db.QueryRowContext(ctx, "SELECT sessionKey FROM members WHERE name = 'team-lead'").Scan(&lead); err != nil {
		return err
	}
	now := time.Now()
	if _, err := db.ExecContext(ctx, sqlFillMail, n, now.UnixMilli()); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, sqlFillSent, lead); err != nil {
		return err
	}
	box, err := inbox.Open(w.layout.Inboxes(), w.layout.Locks(), team.LeadName)
	if err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		if err := box.Append(ctx, inbox.Entry{From: memberName(0), Text: fmt.Sprintf("message %d of the past", i), Summary: "a message",
			ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Timestamp: inbox.Timestamp(now)}); err != nil {
			return err
		}
	}
	return nil
}

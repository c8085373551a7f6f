package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// world is a team without processes in a home of its own.
type world struct {
	layout team.Layout
	env    []string
	bin    string
	said   bytes.Buffer // what supervisors have logged
}

// newWorld makes the team "b" with as many members, m0 and so on, who never run.
func newWorld(ctx context.Context, e env, name string, members int) (*world, error) {
	home := filepath.Join(e.dir, name)
	bin, err := filepath.Abs(e.teamctl)
	if err != nil {
		return nil, err
	}
	w := &world{layout: team.Home{Dir: home}.Team("b"), bin: bin}
	// The place of the sockets is found by the environment, here and in the children.
	if err := os.Setenv(team.EnvRuntime, filepath.Join(e.dir, "r")); err != nil {
		return nil, err
	}
	w.env = append(os.Environ(), team.EnvHome+"="+home, "TMUX=", "TMUX_PANE=", "TEAMCTL_SUPERVISOR_IDLE=5m")
	if err := quiet(ctx, w.env, bin, "create", "b"); err != nil {
		return nil, err
	}
	led, closeDB, err := w.open(ctx, true)
	if err != nil {
		return nil, err
	}
	for i := range members {
		_, _, err := led.AddMember(ctx, ledger.Member{
			Name: memberName(i), SessionKey: memberSession(i), Role: team.RoleExecutor,
			Desired: team.WantStopped, Observed: team.Completed, Activity: team.ActivityUnknown,
		}, true)
		if err != nil {
			return nil, errors.Join(err, closeDB())
		}
	}
	return w, closeDB()
}

func memberName(i int) string    { return fmt.Sprintf("m%d", i) }
func memberSession(i int) string { return fmt.Sprintf("agent:default:teammate:m%d", i) }

// open opens the ledger as a process of the team does; direct leaves a supervisor out.
func (w *world) open(ctx context.Context, direct bool) (*ledger.Ledger, func() error, error) {
	return openLedger(ctx, w.layout, direct)
}

func openLedger(ctx context.Context, l team.Layout, direct bool) (*ledger.Ledger, func() error, error) {
	db, err := ledger.Open(ctx, l.Ledger(), ledger.Options{LockPath: l.LedgerLock(), BusyTimeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	writer := ledger.Direct(db)
	if !direct {
		writer, _ = control.Writer(l, writer)
	}
	return ledger.New(db, writer), db.Close, nil
}

// Tasks as CreateTasks leaves them, made by SQLite alone: a million of them takes
// minutes when each is an operation's.
const (
	sqlFill = `INSERT INTO tasks(id, subject, description, status, dependsOn, blockedBy, createdAt)
		WITH RECURSIVE n(i) AS (SELECT ?1 + 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 + ?2)
		SELECT CAST(i AS TEXT), 'task', '', 'pending', '[]', '[]', ?3 FROM n`
	sqlFillEvents = `INSERT INTO events(at, who, what, id, after, data)
		SELECT createdAt, ?1, 'task.created', id, 'pending', '{"subject":"task"}' FROM tasks WHERE seq > ?2 ORDER BY seq`
	sqlFillMark = `UPDATE counters SET value = ?1 WHERE name = 'task'`
)

// tasks puts n tasks on the board, while nobody else has the ledger open.
func (w *world) tasks(ctx context.Context, n int) (err error) {
	db, err := sql.Open("sqlite3", "file:"+w.layout.Ledger()+"?mode=rw&_synchronous=OFF&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var last int64
	err = tx.QueryRowContext(ctx, "SELECT value FROM counters WHERE name = 'task'").Scan(&last)
	for _, do := range []struct {
		sql  string
		args []any
	}{
		{sqlFill, []any{last, n, time.Now().UnixMilli()}},
		{sqlFillEvents, []any{team.LeadName, last}},
		{sqlFillMark, []any{last + int64(n)}},
	} {
		if err == nil {
			_, err = tx.ExecContext(ctx, do.sql, do.args...)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("fill the board: %w", err), tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	var busy, log, moved int
	err = db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	if err == nil && busy != 0 {
		err = errors.New("fill the board: somebody reads the ledger")
	}
	return err
}

// supervise starts the team's supervisor; stop ends it.
func (w *world) supervise(ctx context.Context) (stop func(), err error) {
	cmd, err := w.process(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}, nil
}

// errNoUsage is what looking at processes comes to where there is no /proc.
var errNoUsage = errors.New("what processes use is read from /proc, on Linux only")

// measured is supervise with the processor time that the supervisor has taken since.
func (w *world) measured(ctx context.Context) (stop func(), served func() (time.Duration, error), err error) {
	cmd, err := w.process(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
	pids := []int{cmd.Process.Pid}
	before, err := activityOf(pids)
	if errors.Is(err, errNoUsage) {
		return stop, func() (time.Duration, error) { return 0, nil }, nil
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return stop, func() (time.Duration, error) {
		now, err := activityOf(pids)
		return now.since(before).busy, err
	}, nil
}

// process starts the team's supervisor and returns when it answers.
func (w *world) process(ctx context.Context) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, w.bin, "supervise", "--team", "b")
	cmd.Env = w.env
	cmd.Stderr = &w.said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	client := control.NewClient(w.layout.Socket())
	defer client.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
		if _, err := client.Status(ctx); err == nil {
			return cmd, nil
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return nil, fmt.Errorf("the supervisor does not come up: %s", w.said.String())
		}
	}
}

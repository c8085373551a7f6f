package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// startTimeout bounds the start of a supervisor, adoption of its members included.
const startTimeout = 60 * time.Second

// readyFD is the descriptor on which a started supervisor reports that it listens.
const readyFD = 3

// EnvReady tells a supervisor process that its starter waits on readyFD.
const EnvReady = "TEAMCTL_READY_FD"

// Dialer returns what tool.Env.Dial wants: the supervisor of a team, started by
// running exe (argv without the team) where there is none and start is set. It gets the
// environment of this process, where that is a person's by what it shows itself.
func Dialer(exe []string) func(ctx context.Context, l team.Layout, start bool) (tool.Supervisor, error) {
	return DialerFrom(exe, func(team.Layout) Origin { return OriginOf(os.Environ()) })
}

// DialerFrom is Dialer for who knows better whose environment this process has.
func DialerFrom(exe []string, origin func(team.Layout) Origin) func(ctx context.Context, l team.Layout, start bool) (tool.Supervisor, error) {
	return func(ctx context.Context, l team.Layout, start bool) (tool.Supervisor, error) {
		who, err := reach(ctx, l.Socket(), l.Ledger())
		if err == nil && who != present && !start {
			err = silently(ctx, l.SupervisorLock())
		}
		if err != nil || who != present && !start {
			return nil, err
		}
		c := newClient(l)
		if start {
			c.revive = func(ctx context.Context) error { return startUp(ctx, l, exe, origin(l)) }
		}
		if who != present {
			if err := c.revive(ctx); err != nil {
				return nil, err
			}
		}
		return c, nil
	}
}

// Writer is the ledger writer of a process that is not the supervisor: through
// the socket while one listens, else direct.
func Writer(l team.Layout, direct ledger.Writer) (ledger.Writer, tool.Settler) {
	client := newClient(l)
	w := ledger.Switching(func(context.Context) (ledger.Writer, bool) {
		if client.ops.connected() { // it reports a missing supervisor itself
			return client, true
		}
		if _, err := os.Lstat(client.socket); err != nil {
			return nil, false
		}
		return client, true
	}, direct)
	return w, client
}

// reasonDied is a supervisor that ended without a word.
const reasonDied = "supervisor_died"

// startUp starts the supervisor, one starter at a time.
func startUp(ctx context.Context, l team.Layout, exe []string, from Origin) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ctx, watch := watchStart(ctx, l)
	defer watch.stop(&err)
	lock, err := filelock.Lock(ctx, l.StartingLock())
	if err != nil {
		return fmt.Errorf("wait to start the supervisor: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	// The holder of the team's lock may be exiting or about to listen.
	for called, died := false, 0; ; {
		who, err := reach(ctx, l.Socket(), l.Ledger())
		if err != nil || who == present {
			return err
		}
		env, fresh, err := personEnv(l, from, os.Environ())
		if err != nil {
			return err
		}
		if fresh {
			_ = record(l, env) // without it the next start has to be a person's
		}
		err = launch(ctx, l, exe, env, watch)
		if team.ReasonOf(err) == reasonDied && died < 2 { // killed, most likely: once more
			died++
			continue
		}
		if team.ReasonOf(err) != "supervisor_running" {
			return err
		}
		if who, err := awaitLocks(ctx, l, &called); err != nil || who == present {
			return err
		}
	}
}

// awaitLocks waits until the locks of a supervisor are free, or one answers: another start would
// only find them held. A supervisor whose socket was removed is called, once.
func awaitLocks(ctx context.Context, l team.Layout, called *bool) (presence, error) {
	for wait := 2 * time.Millisecond; ; wait = min(wait*3/2, 50*time.Millisecond) {
		if _, err := os.Lstat(l.Socket()); errors.Is(err, os.ErrNotExist) && !*called && isHeld(l.SupervisorLock()) {
			*called = true
			if err := call(ctx, l); err != nil {
				return nobody, err
			}
		}
		if held, err := locksHeld(l); err != nil || !held {
			return nobody, err
		}
		if pause.For(ctx, wait) != nil {
			return nobody, team.Errorf(team.CodeUnavailable, "the supervisor of %s runs, pid %s, but does not answer", l.Key, readPID(l)).
				WithHint("look at " + l.SupervisorLog())
		}
		if who, err := reach(ctx, l.Socket(), l.Ledger()); err != nil || who == present {
			return who, err
		}
	}
}

// supervisorLocks are the locks that a supervisor holds for life.
type supervisorLocks [2]*filelock.Held

// Unlock frees them.
func (s supervisorLocks) Unlock() error { return errors.Join(s[1].Unlock(), s[0].Unlock()) }

// locksHeld reports whether a supervisor holds one of its locks: the team's, or that of the
// sockets, which one of a directory that had the path before may still have.
func locksHeld(l team.Layout) (bool, error) {
	held, err := filelock.IsHeld(l.SupervisorLock())
	if err != nil || held {
		return held, err
	}
	return filelock.IsHeld(l.RuntimeLock())
}

func isHeld(path string) bool {
	held, err := filelock.IsHeld(path)
	return err == nil && held
}

// logMost is the length from which a supervisor begins a new log, in bytes.
const logMost = 8 << 20

// openLog opens the log of a supervisor to append to it. A long one is kept as NAME.1, instead of the one
// before.
func openLog(path string) (*os.File, error) {
	if fi, err := os.Lstat(path); err == nil && fi.Mode().IsRegular() && fi.Size() > logMost {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return regular.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// launch starts one supervisor process in a session of its own and waits until it listens or has
// reported why it cannot.
func launch(ctx context.Context, l team.Layout, exe, env []string, watch *startWatch) (err error) {
	log, err := openLog(l.SupervisorLog())
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "open supervisor log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	defer func() { _ = r.Close() }()
	cmd := exec.Command(exe[0], append(append([]string{}, exe[1:]...), "supervise", "--team", l.Key)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = l.Dir
	cmd.Env = superviseEnv(env, l)
	cmd.ExtraFiles = []*os.File{w} // readyFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "start the supervisor: %w", err)
	}
	pid := cmd.Process.Pid
	watch.child.Store(int64(pid))
	defer watch.child.Store(0)
	go reap(cmd)

	type said struct {
		line string
		err  error
	}
	ch := make(chan said, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(r, 1<<16)).ReadString('\n')
		ch <- said{strings.TrimSpace(line), err}
	}()
	select {
	case s := <-ch:
		return readReady(s.line, s.err, pid, l)
	case <-ctx.Done():
	}
	moment := time.NewTimer(readWithin)
	defer moment.Stop()
	select {
	case s := <-ch:
		return readReady(s.line, s.err, pid, l)
	case <-moment.C:
		return team.Errorf(team.CodeTimeout, "the supervisor, pid %d, did not start", pid).
			WithHint("look at " + l.SupervisorLog())
	}
}

// readWithin bounds reading what a supervisor has said by the time limit, as while this process was
// stopped.
const readWithin = 200 * time.Millisecond

// reap waits for a supervisor for as long as this process lives, which may be
// shorter: it is not ours to end, only not to leave a zombie of.
func reap(cmd *exec.Cmd) { _ = cmd.Wait() }

// readReady understands the one line of a started supervisor.
func readReady(line string, err error, pid int, l team.Layout) error {
	if line == "ok" {
		return nil
	}
	e := &team.Error{}
	if json.Unmarshal([]byte(line), e) == nil && e.Code != "" {
		return e
	}
	return team.Errorf(team.CodeUnavailable, "the supervisor, pid %d, ended before it listened (%v)", pid, err).
		WithReason(reasonDied).WithHint("look at " + l.SupervisorLog())
}

// Ready returns what a supervisor process calls once, with nil when it listens or
// with the error that ends it. Without a starter that waits it does nothing.
func Ready() func(error) {
	if os.Getenv(EnvReady) == "" {
		return func(error) {}
	}
	_ = os.Unsetenv(EnvReady)
	syscall.CloseOnExec(readyFD)
	f := os.NewFile(readyFD, "ready")
	said := false
	return func(err error) {
		if said {
			return
		}
		said = true
		line := []byte("ok")
		if err != nil {
			line, _ = json.Marshal(errorOf(err))
		}
		_, _ = f.Write(append(line, '\n'))
		_ = f.Close()
	}
}

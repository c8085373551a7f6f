package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
)

const (
	// leftoverGrace is the grace period for descendants that outlive the agent.
	leftoverGrace = 2 * time.Second
	// hangupGrace is the grace period for an agent whose terminal is closed.
	hangupGrace = 3 * time.Second
)

// run performs steps 5 and 6 up to the record.
func (s *state) run() backends.Exit {
	e := backends.Exit{Generation: s.launch.Generation}
	sigs := make(chan os.Signal, 64)
	// Caught, not ignored: an ignored signal would stay ignored in the agent.
	signal.Notify(sigs, unix.SIGCHLD, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE)
	defer signal.Stop(sigs)
	pid, err := s.spawn()
	if err != nil {
		e = execFailure(e, err)
		e.At = time.Now()
		_ = fail(errors.New(e.Reason), 0)
		if s.own != nil {
			s.own.Refused(e.Reason)
			e.Tail = s.own.Drain()
		}
		_ = s.recordProc(backends.ProcID{})
		if s.tty {
			s.markEnd()
		}
		s.ungroup()
		return e
	}
	if s.own != nil {
		s.own.Serve()
	}
	s.agent = pid
	began := time.Now()
	if s.tty || s.own != nil {
		// The shim is in the background now, and its own output must not stop
		// it.
		signal.Ignore(unix.SIGTTOU, unix.SIGTTIN)
	}
	id, err := proc.IdentifyAny(pid)
	if err != nil {
		id = backends.ProcID{PID: pid} // known to the shim, never taken for alive by others
	}
	unrecorded := s.recordProc(id)
	if unrecorded == nil {
		s.notify(bundle.EventUp)
		debug.FreeOSMemory()
	} else {
		// This agent could never be adopted or ended, so it must not continue.
		_ = unix.Kill(-pid, unix.SIGKILL)
	}

	ws := s.wait(sigs)
	s.look(sigs)
	e.At, e.Ran = time.Now(), time.Since(began)
	e.Known, e.Code = true, ws.ExitStatus()
	if ws.Signaled() {
		e.Code, e.Signal = -1, proc.SignalName(ws.Signal())
	}
	if unrecorded != nil {
		e.Known, e.Code, e.Signal, e.Reason = false, -1, "", "start failed: "+unrecorded.Error()
	}
	switch {
	case s.hung:
		e.Reason = backends.ReasonTerminalGone
	case s.told:
		e.Reason = backends.ReasonShimTerminated
	}
	s.oom(&e)
	n, err := s.endLeftovers()
	e.Leftover = n
	s.ungroup()
	if err != nil {
		e.Because(err.Error())
	}
	if s.own != nil {
		e.Tail = s.own.Drain() // no process is left that could write
	} else if s.tty {
		s.markEnd()
	}
	return e
}

// recordProc writes proc.json and releases start.lock. If that fails it keeps
// the lock to the end: no other start may begin before this one is over.
func (s *state) recordProc(agent backends.ProcID) error {
	self, err := proc.Self()
	if err == nil {
		err = bundle.WriteProc(s.bundle, backends.Proc{
			Generation: s.launch.Generation, Shim: self, Agent: agent, StartedAt: time.Now(),
			Cgroup: s.groupPath(), Uncontained: s.uncontained, Limits: s.kept,
		})
	}
	if err != nil { // the backend finds the file missing and rolls back
		_ = fail(err, 0)
		return err
	}
	s.start.Unlock()
	return nil
}

// wait handles signals until the agent has been reaped.
func (s *state) wait(sigs <-chan os.Signal) syscall.WaitStatus {
	for {
		if ws, ok := s.reap(); ok {
			return ws
		}
		select {
		case sig := <-sigs:
			s.handle(sig)
		case <-s.pendingHang:
			s.pendingHang = nil
			if id, err := proc.Identify(s.agent); err == nil {
				_, _ = proc.KillTreeIn(context.Background(), s.group, []backends.ProcID{id}, "", leftoverGrace)
			}
		}
	}
}

func (s *state) handle(sig os.Signal) {
	switch sig {
	case unix.SIGTERM:
		s.told = true
		s.signalAgent(unix.SIGTERM)
	case unix.SIGHUP:
		// Only the session leader is notified of a closed terminal: forward
		// that, as the kernel would if the agent were the leader.
		if s.tty && !s.hung && terminalGone() {
			s.hung = true
			s.pendingHang = time.After(hangupGrace)
		}
		s.signalAgent(unix.SIGHUP)
	case unix.SIGUSR1:
		if s.own != nil {
			s.own.Relisten()
		}
	default:
		// SIGINT and SIGQUIT were meant for the agent, which is in the
		// foreground and gets them; SIGCHLD only wakes the shim.
	}
}

// look notes why the agent may have ended, if that has not been handled: the agent can see
// the end of its terminal, or the signal of a machine that shuts down, before its shim does.
func (s *state) look(sigs <-chan os.Signal) {
	s.hung = s.hung || s.tty && terminalGone()
	arrived()
	for {
		select {
		case sig := <-sigs:
			s.told = s.told || sig == unix.SIGTERM
		default:
			return
		}
	}
}

// arrived returns once signals that were sent to the process before have reached its channels: of a
// signal that a thread is about to handle, the kernel no longer says that it is pending.
func arrived() {
	const mark = unix.SIGTSTP // a later one than SIGTERM: of two that are pending the kernel takes the lower first
	own := make(chan os.Signal, 1)
	signal.Notify(own, mark)
	passThrough(mark)
	signal.Stop(own) // after it what was handled is in the channels
}

// signalAgent sends sig to the agent's group. The agent is not reaped yet, so
// the group still belongs to it; SIGCONT, because a stopped process handles no
// signal.
func (s *state) signalAgent(sig unix.Signal) {
	_ = unix.Kill(-s.agent, sig)
	_ = unix.Kill(-s.agent, unix.SIGCONT)
}

func terminalGone() bool {
	_, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOTTY)
}

// reap collects every child that has ended; ok reports whether the agent was
// among them.
func (s *state) reap() (agent syscall.WaitStatus, ok bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			return agent, ok
		}
		switch {
		case ws.Stopped():
			// "fg" cannot be typed, so a Ctrl-Z would leave the agent stopped
			// for good. tmux does the same for the pane's own process.
			if pid == s.agent && (s.tty || s.own != nil) && ws.StopSignal() != unix.SIGTTIN && ws.StopSignal() != unix.SIGTTOU {
				_ = unix.Kill(-pid, unix.SIGCONT)
			}
		case pid == s.agent:
			agent, ok = ws, true
		}
	}
}

// endLeftovers ends what outlived the agent. The shim is the subreaper: if it
// has no child left, no descendant is alive.
func (s *state) endLeftovers() (ended int, err error) {
	for range 20 {
		s.reap()
		if subreaps && childless() {
			return ended, nil
		}
		kids, err := proc.Children()
		if err != nil {
			return ended, fmt.Errorf("end the processes that the agent left: %w", err)
		}
		n, err := proc.KillTreeIn(context.Background(), s.group, kids, s.launch.Generation, leftoverGrace)
		ended += n
		if err != nil {
			return ended, err
		}
		if n == 0 {
			s.reap()
			return ended, nil
		}
	}
	return ended, errors.New("the agent's processes multiply faster than they can be ended")
}

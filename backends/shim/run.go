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
	"github.com/teamctl/teamctl/internal/proc"
)

const (
	// leftoverGrace is what descendants get that outlived the agent.
	leftoverGrace = 2 * time.Second
	// hangupGrace is what an agent gets whose terminal is gone.
	hangupGrace = 3 * time.Second
)

// run does steps 5 and 6 up to the record.
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
			markEnd(s.launch.Generation)
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
		// Our own output must not stop us now that we are in the background.
		signal.Ignore(unix.SIGTTOU, unix.SIGTTIN)
	}
	id, err := proc.IdentifyAny(pid)
	if err != nil {
		id = backends.ProcID{PID: pid} // known to us, never taken for alive by others
	}
	unrecorded := s.recordProc(id)
	if unrecorded == nil {
		s.notify(EventUp)
		debug.FreeOSMemory()
	} else {
		// Nobody could ever adopt or end this agent: it must not go on.
		_ = unix.Kill(-pid, unix.SIGKILL)
	}

	ws := s.wait(sigs)
	e.At, e.Ran = time.Now(), time.Since(began)
	e.Known, e.Code = true, ws.ExitStatus()
	if ws.Signaled() {
		e.Code, e.Signal = -1, proc.SignalName(ws.Signal())
	}
	if unrecorded != nil {
		e.Known, e.Code, e.Signal, e.Reason = false, -1, "", "start failed: "+unrecorded.Error()
	}
	if s.hung {
		e.Reason = backends.ReasonTerminalGone
	}
	s.oom(&e)
	n, err := s.endLeftovers()
	e.Leftover = n
	s.ungroup()
	if err != nil {
		e.Reason = joinReason(e.Reason, err.Error())
	}
	if s.own != nil {
		e.Tail = s.own.Drain() // now nobody is left who could write
	} else if s.tty {
		markEnd(s.launch.Generation)
	}
	return e
}

func joinReason(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// recordProc writes proc.json and lets start.lock go. Without the file the lock is
// kept to the end: no other start may come before this one is over.
func (s *state) recordProc(agent backends.ProcID) error {
	self, err := proc.Self()
	if err == nil {
		err = writeProc(s.bundle, backends.Proc{
			Generation: s.launch.Generation, Shim: self, Agent: agent, StartedAt: time.Now(),
			Cgroup: s.groupPath(), Uncontained: s.uncontained, Limits: s.kept,
		})
	}
	if err != nil { // the backend sees the missing file and rolls back
		_ = fail(err, 0)
		return err
	}
	s.start.Unlock()
	return nil
}

// wait serves signals until the agent has been reaped.
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
		s.signalAgent(unix.SIGTERM)
	case unix.SIGHUP:
		// Only the session leader hears of a closed terminal: pass it on, as the
		// kernel would if the agent were the leader.
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
		// SIGINT and SIGQUIT were meant for the agent, which is in the foreground
		// and has them; SIGCHLD only wakes us.
	}
}

// signalAgent reaches the agent's group while the agent is not reaped, so the
// group is certainly its own; SIGCONT because a stopped one takes nothing.
func (s *state) signalAgent(sig unix.Signal) {
	_ = unix.Kill(-s.agent, sig)
	_ = unix.Kill(-s.agent, unix.SIGCONT)
}

func terminalGone() bool {
	_, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.ENOTTY)
}

// reap takes every child that has ended; ok is true when the agent was among them.
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
			// Nobody could type "fg": a Ctrl-Z would leave the agent stopped for good.
			// tmux does the same for the pane's own process.
			if pid == s.agent && (s.tty || s.own != nil) && ws.StopSignal() != unix.SIGTTIN && ws.StopSignal() != unix.SIGTTOU {
				_ = unix.Kill(-pid, unix.SIGCONT)
			}
		case pid == s.agent:
			agent, ok = ws, true
		}
	}
}

// endLeftovers ends what outlived the agent. We are the subreaper: having no
// child left proves that no descendant lives.
func (s *state) endLeftovers() (ended int, err error) {
	for range 20 {
		s.reap()
		if subreaps && childless() {
			return ended, nil
		}
		kids, err := proc.Children()
		if err != nil {
			return ended, fmt.Errorf("end what the agent left: %w", err)
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

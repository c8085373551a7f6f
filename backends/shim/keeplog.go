package shim

import (
	"bytes"
	"context"
	"errors"
	"os/signal"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// If the terminal belongs to tmux, a separate process writes the log: tmux
// copies a pane's output to it. It exits at the end of the pipe, or as soon as
// it has read the end of the output: when no process is left that could write,
// the shim writes a mark to the terminal, and everything written before the
// mark precedes it.

// endMark returns the mark: an operating system command that no terminal
// implements, and that therefore shows nothing.
func endMark(gen string) []byte { return []byte("\x1b]7705;teamctl-end;" + gen + "\x1b\\") }

// markWithin limits the time for writing the mark: a terminal may be stopped
// (Ctrl-S).
const markWithin = 300 * time.Millisecond

// markEnd writes the mark to the shim's terminal.
func markEnd(gen string) {
	// Opened again, so that non-blocking mode affects no other descriptor.
	fd, err := unix.Open("/dev/tty", unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	deadline := time.Now().Add(markWithin)
	for p := endMark(gen); len(p) > 0; {
		n, err := unix.Write(fd, p)
		switch {
		case err == nil:
			p = p[n:]
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			left := time.Until(deadline)
			if left <= 0 {
				return
			}
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(left.Milliseconds())+1)
		default:
			return
		}
	}
}

// readWithin limits the wait for the output to be read: the terminal may be stopped, or
// its program frozen.
const readWithin = 10 * time.Second

// awaitLog returns when the log writer has ended, at the mark or with the pane. Until the
// shim exits, tmux keeps the terminal open. When it exits, tmux closes the terminal, even if
// there is output that the kernel has not passed on yet: on a busy machine it passes on
// late, and a program that ends at once would leave nothing on its screen or in its log.
func (s *state) awaitLog() {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	holder.AwaitLog(ctx, s.bundle, s.launch.Generation)
}

// keepLog implements bundle.StepLog.
func keepLog(args []string) int {
	b, gen, err := parse(args)
	if err != nil {
		return fail(err, 2)
	}
	// Signals that end the agent or the user's terminal are not meant for its
	// log: the end of the pipe is what counts.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTSTP)
	me := bundle.Logger{Generation: gen}
	if me.Process, err = proc.Self(); err == nil {
		// Without it, an exit may be reported before its last output is in the
		// log.
		_ = bundle.WriteLogger(b, me)
	}
	l, err := bundle.OpenLog(b.Log())
	if err != nil {
		return fail(err, 1)
	}
	debug.FreeOSMemory()
	err = copyLog(0, l, endMark(gen), func() bool { return agentGone(b, gen) })
	if cerr := l.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fail(err, 1)
	}
	if now, err := bundle.ReadLogger(b, gen); err == nil && now.Process == me.Process {
		me.Ended = true
		_ = bundle.WriteLogger(b, me)
	}
	return 0
}

// agentGone protects against a program that writes the mark itself.
func agentGone(b team.Bundle, gen string) bool {
	pr, err := bundle.ReadProc(b, gen)
	return err == nil && !proc.Alive(pr.Agent)
}

// copyLog reads fd to its end, or to the mark if over confirms that the agent
// has exited.
func copyLog(fd int, l *bundle.LogFile, mark []byte, over func() bool) error {
	buf := make([]byte, 32<<10)
	held := 0 // bytes at the start of buf that may be the beginning of the mark
	for {
		n, err := unix.Read(fd, buf[held:])
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case err != nil || n == 0:
			_, _ = l.Write(buf[:held])
			return err
		}
		text := buf[:held+n]
		if i := bytes.Index(text, mark); i >= 0 && over() {
			_, _ = l.Write(text[:i])
			return nil
		}
		keep := partialMark(text, mark)
		_, _ = l.Write(text[:len(text)-keep])
		held = copy(buf, text[len(text)-keep:])
	}
}

// partialMark returns the number of bytes at the end of text that are a prefix
// of mark.
func partialMark(text, mark []byte) int {
	for n := min(len(text), len(mark)-1); n > 0; n-- {
		if bytes.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}

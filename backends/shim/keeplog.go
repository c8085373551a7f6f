package shim

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// If the terminal belongs to tmux, a separate process writes the log: tmux
// copies a pane's output to it. It exits at the end of the pipe, or as soon as
// it has read the end of the output: when no process is left that could write,
// the shim writes a mark to the terminal, and everything written before the
// mark precedes it. A shim that was killed writes none, and tmux keeps the pipe
// of a dead pane open: then SIGTERM says that what is in the pipe is the rest.

// endMark returns the mark: an operating system command that no terminal
// implements, and that therefore shows nothing.
func endMark(gen string) []byte { return []byte("\x1b]7705;teamctl-end;" + gen + "\x1b\\") }

// askRead asks the terminal for its status. tmux answers with allRead when it has read
// everything before the question, on whatever the pane shows.
const askRead, allRead = "\x1b[5n", "\x1b[0n"

const (
	// markWithin limits the time for writing the mark before the exit is recorded.
	markWithin = 300 * time.Millisecond
	// readWithin limits the time for the rest of the mark and for the answer after
	// that: the program of the terminal may be frozen.
	readWithin = 10 * time.Second
)

// markEnd writes the mark to the shim's terminal, and asks whether everything is read.
// awaitRead writes what the terminal has not taken yet, and waits for the answer.
func (s *state) markEnd() {
	// Opened again, so that non-blocking mode affects no other descriptor.
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	quiet(fd)
	s.asked = fd
	s.unmarked = writeBy(fd, append(endMark(s.launch.Generation), askRead...), time.Now().Add(markWithin))
}

// quiet has a terminal pass on what comes in as it is, and echo nothing. Output that
// was stopped (Ctrl-S) goes on. Only the foreground may read it.
func quiet(fd int) {
	signal.Ignore(unix.SIGTTOU, unix.SIGTTIN)
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp())
	if t, err := unix.IoctlGetTermios(fd, getTermios); err == nil {
		t.Iflag &^= unix.IXON
		t.Lflag &^= unix.ICANON | unix.ECHO | unix.ECHONL | unix.ISIG | unix.IEXTEN
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		_ = unix.IoctlSetTermios(fd, setTermios, t)
	}
}

// writeBy writes to a terminal, and returns what it has not taken by the deadline.
func writeBy(fd int, p []byte, deadline time.Time) []byte {
	for len(p) > 0 {
		n, err := unix.Write(fd, p)
		switch {
		case err == nil:
			p = p[n:]
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if !ready(fd, unix.POLLOUT, deadline) {
				return p
			}
		default:
			return p
		}
	}
	return nil
}

// ready waits until a descriptor can be read or written; it returns false at the deadline.
func ready(fd int, event int16, deadline time.Time) bool {
	left := time.Until(deadline)
	if left <= 0 {
		return false
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: event}}, int(left.Milliseconds())+1)
	return true
}

// awaitRead returns when the terminal has read everything. Until the shim exits, tmux keeps
// the terminal open. When it exits, tmux closes the terminal, even if there is output that
// the kernel has not passed on yet: on a busy machine it passes on late, and a program that
// ends at once would leave nothing on its screen or in its log.
func (s *state) awaitRead() {
	if s.asked == 0 {
		return
	}
	defer func() { _ = unix.Close(s.asked) }()
	deadline := time.Now().Add(readWithin)
	if s.unmarked = writeBy(s.asked, s.unmarked, deadline); len(s.unmarked) > 0 {
		return
	}
	var said []byte
	buf := make([]byte, 512)
	for !bytes.Contains(said, []byte(allRead)) {
		n, err := unix.Read(s.asked, buf)
		switch {
		case err == nil && n > 0:
			said = append(said[max(0, len(said)-len(allRead)):], buf[:n]...)
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if !ready(s.asked, unix.POLLIN, deadline) {
				return
			}
		default: // the terminal is gone
			return
		}
	}
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
	finish, err := finishOn(unix.SIGTERM)
	if err != nil {
		return fail(err, 1)
	}
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
	err = copyLog(0, finish, l, endMark(gen), func() bool { return agentGone(b, gen) })
	if cerr := l.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, errUnfinished) {
		return 128 + int(unix.SIGTERM)
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

// finishOn returns a descriptor that can be read from the signal on.
func finishOn(sig os.Signal) (int, error) {
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		return 0, err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, sig)
	go func() {
		<-told
		_ = unix.Close(pipe[1])
	}()
	return pipe[0], nil
}

// errUnfinished is the end of a log writer that was told to finish while the agent could go on to write.
var errUnfinished = errors.New("told to finish before the agent has exited")

// copyLog reads fd to its end, or to the mark if over confirms that the agent
// has exited, or until it has nothing to read once finish can be read.
func copyLog(fd, finish int, l *bundle.LogFile, mark []byte, over func() bool) error {
	buf := make([]byte, 32<<10)
	held := 0 // bytes at the start of buf that may be the beginning of the mark
	for {
		if more := awaitOutput(fd, finish); !more {
			_, err := l.Write(buf[:held])
			if err == nil && !over() {
				err = errUnfinished
			}
			return err
		}
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

// awaitOutput waits until fd can be read, or has ended. It returns false if only finish can be read.
func awaitOutput(fd, finish int) (more bool) {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(finish), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return true // the read tells
		}
		if fds[0].Revents != 0 || fds[1].Revents != 0 {
			return fds[0].Revents != 0
		}
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

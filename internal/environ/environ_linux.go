package environ

import (
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/procfs"
)

// Of returns the environment with which a process was executed, each variable
// terminated by NUL; nil if it may not be read, as for every process of another
// user, or if the process is not alive. The result may use buf, which may be
// nil. During an exec a process has no environment for a moment, which does not
// show where it belongs: Of waits for that.
func Of(pid int, buf []byte) []byte {
	b, err := Read(pid, buf)
	if err != nil {
		return nil
	}
	return b
}

// Read is Of with the reason if the environment may not be read.
func Read(pid int, buf []byte) ([]byte, error) {
	b, err := read(pid, buf)
	if err == nil && len(b) == 0 {
		b, err = afterExec(pid, buf)
	}
	return b, err
}

// read reads an environment in one call: between two calls the process may
// execute another program, and the part read so far would be mistaken for the
// whole. It is used on the whole process table, where os.File would need twice
// as many system calls.
func read(pid int, buf []byte) ([]byte, error) {
	fd, err := again(func() (int, error) {
		return unix.Open("/proc/"+strconv.Itoa(pid)+"/environ", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	if cap(buf) == 0 {
		buf = make([]byte, 16<<10)
	}
	for b := buf[:cap(buf)]; ; b = make([]byte, 4*len(b)) {
		n, err := again(func() (int, error) { return unix.Pread(fd, b, 0) })
		if err != nil {
			return nil, err
		}
		if n < len(b) {
			return b[:n], nil
		}
	}
}

// again repeats f until no signal interrupts it.
func again(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

const (
	// execWait limits, in checks a millisecond apart, how long to wait for an
	// exec. An exec takes some ten microseconds, but any time on a disk that
	// hangs.
	execWait = 1000
	// surelyEmpty is how often an environment must be found empty to be
	// considered empty: another exec may happen between two checks.
	surelyEmpty = 3
)

// afterExec waits until the process has its program, and reads its environment
// again.
func afterExec(pid int, buf []byte) (b []byte, err error) {
	var tick *time.Ticker
	for look, empty := 0, 0; look < execWait && empty < surelyEmpty; look++ {
		amid, living := amidExec(pid)
		if !living {
			return nil, nil
		}
		if amid {
			if tick == nil {
				tick = time.NewTicker(time.Millisecond)
				defer tick.Stop()
			}
			<-tick.C
			continue
		}
		if b, err = read(pid, buf); err != nil || len(b) > 0 {
			return b, err
		}
		empty++
	}
	return nil, nil
}

// amidExec reports whether a process has left its old program and does not have
// the new one yet: it has memory and no code. Zombies and kernel threads have no memory.
func amidExec(pid int) (amid, living bool) {
	s, err := procfs.Of(pid)
	if err != nil || !s.Memory {
		return false, false
	}
	return !s.Code, true
}

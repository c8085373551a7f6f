package environ

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Of is what the process was executed with, each variable ended by NUL; nil where it
// may not be read, which is so for every process of another user, and of what does not
// live. It may stand in buf, which may be nil. A process amid its exec has none for a
// moment, which says nothing of whose it is: that is waited for.
func Of(pid int, buf []byte) []byte {
	b, err := read(pid, buf)
	if err == nil && len(b) == 0 {
		b, err = afterExec(pid, buf)
	}
	if err != nil {
		return nil
	}
	return b
}

// read reads an environment in one call: between two, the process may execute another
// program, and what has been read would look like the whole. Whole process tables are
// read: os.File would ask the kernel twice as much.
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

// again calls f until no signal comes between.
func again(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

const (
	// execWait bounds, in looks a millisecond apart, how long an exec is waited for. It
	// takes some ten microseconds, and as long as it likes on a disk that hangs.
	execWait = 1000
	// surelyEmpty is how often an environment is found empty before that is believed:
	// the next exec may come between two looks.
	surelyEmpty = 3
)

// afterExec reads an environment that was empty until the process has its
// program.
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

// amidExec reports whether a process has left its old program and does not have the
// new one yet: it has memory and no code (fs/binfmt_elf.c sets start_code when the
// environment is in place). A zombie and the kernel's own have no memory.
func amidExec(pid int) (amid, living bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false, false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // field 3 is f[0]
	if len(f) < 24 || f[20] == "0" {
		return false, false
	}
	return f[23] == "0", true
}

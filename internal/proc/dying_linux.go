package proc

import (
	"bytes"
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/procfs"
)

// Dying reports whether an existing process will not run any more: SIGKILL,
// which cannot be blocked, is pending, or it is exiting. On a busy machine, or
// during a write to a disk, that may take a while, in which it keeps its pid,
// its sockets and its locks. It returns false if that cannot be read.
func Dying(pid int) bool {
	var buf [4096]byte
	if b, err := readProc(pid, "stat", buf[:]); err == nil && leaving(b) {
		return true
	}
	b, err := readProc(pid, "status", buf[:])
	return err == nil && killed(b)
}

// exiting is PF_EXITING among the kernel's flags of a thread.
const exiting = 0x4

// leaving reports whether the first thread is exiting, or has exited while others have
// not.
func leaving(b []byte) bool {
	s, err := procfs.ParseStat(b)
	return err == nil && (s.State == 'Z' || s.State == 'X' || s.State == 'x' || s.Flags&exiting != 0)
}

// killed parses /proc/<pid>/status: it reports whether SIGKILL is pending for
// the first thread or the process.
func killed(b []byte) bool {
	for line := range bytes.Lines(b) {
		name, mask, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		if string(name) != "SigPnd" && string(name) != "ShdPnd" {
			continue
		}
		set, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
		if err == nil && set&(1<<(syscall.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

// readProc reads the beginning of a file of a process. It is used on the whole
// process table, where os.File would need twice as many system calls.
func readProc(pid int, file string, buf []byte) ([]byte, error) {
	fd, err := again(func() (int, error) {
		return unix.Open("/proc/"+strconv.Itoa(pid)+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := again(func() (int, error) { return unix.Read(fd, buf) })
	return buf[:max(n, 0)], err
}

// again repeats f until no signal interrupts it.
func again(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

package worktree

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// pipeMost is the most that a pipe holds.
const pipeMost = 64 << 10

// runTo runs a command, and writes what the command has written until its exit. A process that it
// has left, such as one that a filter starts, may keep its output open: that one is not waited for.
func runTo(cmd *exec.Cmd, stdout, stderr io.Writer) (err error) {
	var read, written [2]*os.File
	for i := range read {
		if read[i], written[i], err = os.Pipe(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, read[i].Close()) }()
		defer func() { _ = written[i].Close() }() // it may be closed already
	}
	cmd.Stdout, cmd.Stderr = written[0], written[1]
	if err := cmd.Start(); err != nil {
		return err
	}
	for _, w := range written {
		_ = w.Close()
	}
	var copies sync.WaitGroup
	var failed [2]error
	for i, to := range [2]io.Writer{stdout, stderr} {
		copies.Go(func() {
			_, failed[i] = io.Copy(to, read[i])
			if errors.Is(failed[i], os.ErrDeadlineExceeded) {
				failed[i] = rest(to, read[i])
			}
		})
	}
	err = cmd.Wait()
	for _, r := range read {
		_ = r.SetReadDeadline(time.Now()) // of a pipe, which has deadlines
	}
	copies.Wait()
	if errors.Is(err, exec.ErrWaitDelay) { // of its input
		err = nil
	}
	return errors.Join(err, failed[0], failed[1])
}

// rest copies what a pipe holds at this moment.
func rest(to io.Writer, from *os.File) error {
	if err := from.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	data := make([]byte, 0, pipeMost)
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for len(data) < pipeMost {
			n, err := syscall.Read(int(fd), data[len(data):pipeMost])
			switch {
			case errors.Is(err, syscall.EINTR):
				continue
			case errors.Is(err, syscall.EAGAIN):
				return true
			case err != nil:
				failed = err
				return true
			case n == 0:
				return true
			}
			data = data[:len(data)+n]
		}
		return true
	})
	if _, werr := to.Write(data); werr != nil {
		return werr
	}
	return errors.Join(err, failed)
}

package openpty

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOpen checks that the two ends belong together, in goroutines whose stacks have to
// grow, and that Close ends a Read of the master.
func TestOpen(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				pair(t)
			}
		})
	}
	all.Wait()
}

func pair(t *testing.T) {
	master, slave, err := Open()
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = slave.Close() }()
	for _, f := range []*os.File{master, slave} {
		if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s stays open at an exec: %v", f.Name(), err)
		}
	}
	if _, err := io.WriteString(master, "typed\n"); err != nil {
		t.Error(err)
	}
	buf := make([]byte, 100)
	n, err := slave.Read(buf)
	if string(buf[:n]) != "typed\n" || err != nil {
		t.Errorf("%s reads %q, %v", slave.Name(), buf[:n], err)
	}
	if _, err := io.WriteString(slave, "shown"); err != nil {
		t.Error(err)
	}
	var shown string
	for !strings.Contains(shown, "shown") {
		n, err := master.Read(buf)
		if shown += string(buf[:n]); err != nil {
			t.Errorf("the master reads %q, %v", shown, err)
			break
		}
	}
	_ = master.Close()
}

// TestCloseEndsARead checks that a Read of the master returns when it is closed.
func TestCloseEndsARead(t *testing.T) {
	t.Parallel()
	master, slave, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slave.Close() }()
	if _, err := io.WriteString(slave, "x"); err != nil {
		t.Fatal(err)
	}
	reads, done := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := master.Read(make([]byte, 1))
		close(reads)
		if err == nil {
			_, err = master.Read(make([]byte, 1))
		}
		done <- err
	}()
	<-reads
	if err := master.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("a Read of a closed master has no error")
	}
}

package main

import (
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/openpty"
)

// startOnTerminal starts a command on a new terminal.
func startOnTerminal(t *testing.T, c *exec.Cmd, cols, rows uint16) (master *os.File) {
	t.Helper()
	master, slave, err := openpty.Open()
	if err != nil {
		t.Fatal(err)
	}
	err = unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows})
	if err == nil {
		c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		err = c.Start()
	}
	_ = slave.Close()
	if err != nil {
		_ = master.Close()
		t.Fatal(err)
	}
	return master
}

// terminalOutput is the output of a command on its terminal. It is read continuously, since a
// command blocks once it has written more than the terminal holds.
type terminalOutput struct {
	tty  *os.File
	mu   sync.Mutex // guards the destination
	done chan struct{}
}

// readTerminal copies the output of a terminal to dst until the terminal is closed.
func readTerminal(tty *os.File, dst io.Writer) *terminalOutput {
	o := &terminalOutput{tty: tty, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			o.mu.Lock()
			_, _ = dst.Write(buf[:n])
			o.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return o
}

// see calls text, which reads the destination, while nothing is written to it.
func (o *terminalOutput) see(text func() string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return text()
}

// close closes the terminal and waits for the reader.
func (o *terminalOutput) close() {
	_ = o.tty.Close()
	<-o.done
}

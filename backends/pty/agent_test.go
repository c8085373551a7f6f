package pty

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/pty/vt"
	"github.com/teamctl/teamctl/internal/openpty"
	"github.com/teamctl/teamctl/team"
)

// agent is the test binary as a program that uses its terminal:
//
//	full        full-screen: shows its size and what was typed; q ends it
//	deaf        prints "idle" and never reads, in raw mode
//	ask         queries the cursor's position at every key and prints the answer
//	paste       enables bracketed paste; prints what it reads, quoted
//	flood N     prints N lines of 100 bytes, then stays until a key
//	blind       closes its terminal and stays
func agent(args []string) int {
	if _, err := term.MakeRaw(0); err != nil && args[0] != "flood" {
		return 70
	}
	say := func(format string, a ...any) { _, _ = fmt.Fprintf(os.Stdout, format, a...) }
	buf := make([]byte, 4096)
	switch args[0] {
	case "full":
		return fullScreen(say)
	case "deaf":
		say("idle\r\n")
	case "blind":
		say("idle\r\n")
		for fd := range 3 {
			_ = unix.Close(fd)
		}
	case "ask":
		say("idle\r\n")
		for {
			n, err := os.Stdin.Read(buf)
			if err != nil {
				return 0
			}
			if buf[0] == 0x1b {
				say("answer %q\r\n", buf[:n])
				continue
			}
			say("here\x1b[6n")
		}
	case "paste":
		say("\x1b[?2004hidle\r\n")
		for {
			n, err := os.Stdin.Read(buf)
			if err != nil {
				return 0
			}
			say("read %q\r\n", buf[:n])
		}
	case "flood":
		n, _ := strconv.Atoi(args[1])
		if len(args) > 2 { // "later": after a line of input
			_, _ = os.Stdin.Read(buf)
		}
		var b bytes.Buffer
		for i := range n {
			_, _ = fmt.Fprintf(&b, "%08d %s\n", i, strings.Repeat("x", 90))
			if b.Len() > 60_000 || i == n-1 {
				_, _ = b.WriteTo(os.Stdout)
			}
		}
		_, _ = os.Stdin.Read(buf)
		return 0
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	for {
		<-c
	}
}

func fullScreen(say func(string, ...any)) int {
	winch := make(chan os.Signal, 8)
	signal.Notify(winch, syscall.SIGWINCH)
	keys := make(chan byte, 64)
	go func() {
		b := make([]byte, 1)
		for {
			if n, err := os.Stdin.Read(b); err != nil || n == 0 {
				close(keys)
				return
			}
			keys <- b[0]
		}
	}()
	say("before\r\n\x1b[?1049h\x1b[?1h\x1b[?2004h")
	text := ""
	draw := func() {
		cols, rows, _ := term.GetSize(0)
		say("\x1b[2J\x1b[1;1H\x1b[7msize %dx%d\x1b[0m\x1b[%d;3H\x1b[1;32mlast line\x1b[0m", cols, rows, rows)
	}
	draw()
	for {
		// Only changes are drawn: a client that attaches later has not seen the
		// rest.
		say("\x1b[3;1Htyped: %s\x1b[K", text)
		select {
		case <-winch:
			draw()
		case k, ok := <-keys:
			if !ok || k == 'q' {
				say("\x1b[?2004l\x1b[?1l\x1b[?1049lafter\r\n")
				return 7
			}
			text += string(rune(k))
		}
	}
}

const patience = 5 * time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// launch returns a launch of an agent of this file.
func launch(t *testing.T, r *backendtest.Rig, name string, args ...string) backends.Launch {
	t.Helper()
	l := backendtest.Launch(t, r, name)
	l.Argv = append([]string{l.Argv[0], "agent"}, args...)
	l.Cols, l.Rows = 60, 15
	return l
}

func start(t *testing.T, r *backendtest.Rig, l backends.Launch) *attached {
	t.Helper()
	h, err := r.Open(t).Start(within(t), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Found by its record, not by the handle: a test may have closed that.
		if pr, err := bundle.ReadProc(l.Bundle, l.Generation); err == nil {
			a, err := r.Open(t).Adopt(context.Background(), l.Bundle)
			if err == nil {
				if err := a.Stop(context.Background(), time.Second); err != nil {
					t.Errorf("stop %d: %v", pr.Agent.PID, err)
				}
				_ = a.Dispose(context.Background())
			}
		}
	})
	return h.(*attached)
}

func captured(t *testing.T, a backends.Attached, want string) {
	t.Helper()
	shows(t, want, func() string {
		s, err := a.Capture(within(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func shows(t *testing.T, want string, look func() string, more ...func() string) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for s := look(); !strings.Contains(s, want); s = look() {
		select {
		case <-tick.C:
		case <-deadline.C:
			for _, f := range more {
				t.Log(f())
			}
			t.Fatalf("the screen does not show %q but\n%s", want, s)
		}
	}
}

// person is a user at a terminal that is a vt.Screen.
type person struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	winch  chan struct{}
	result chan AttachResult
	err    error
	reader sync.WaitGroup

	mu     sync.Mutex
	screen *vt.Screen
	raw    bytes.Buffer
}

// sit attaches a user.
func sit(t *testing.T, p team.Pane, cols, rows int, change ...func(*AttachIn)) *person {
	t.Helper()
	m, s, err := openpty.Open()
	if err != nil {
		t.Fatal(err)
	}
	q := &person{
		t: t, master: m, slave: s, winch: make(chan struct{}, 1),
		result: make(chan AttachResult, 1), screen: vt.New(cols, rows, 5000),
	}
	q.sizes(cols, rows)
	q.reader.Go(q.look)
	in := AttachIn{Socket: p.Socket, In: s, Out: s, Cols: cols, Rows: rows, Winch: q.winch}
	for _, f := range change {
		f(&in)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var attach sync.WaitGroup
	attach.Go(func() {
		res, err := Attach(ctx, in)
		q.mu.Lock()
		q.err = err
		q.mu.Unlock()
		q.result <- res
	})
	t.Cleanup(func() {
		cancel()
		attach.Wait()
		_ = q.slave.Close()
		_ = q.master.Close()
		q.reader.Wait()
	})
	return q
}

func (q *person) look() {
	buf := make([]byte, 32<<10)
	for {
		n, err := q.master.Read(buf)
		q.mu.Lock()
		_, _ = q.screen.Write(buf[:n])
		q.raw.Write(buf[:n])
		q.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// sizes sets the size of the person's terminal before anything is attached to it.
func (q *person) sizes(cols, rows int) {
	q.t.Helper()
	ws := unix.Winsize{Col: uint16(cols), Row: uint16(rows)}
	if err := unix.IoctlSetWinsize(int(q.slave.Fd()), unix.TIOCSWINSZ, &ws); err != nil {
		q.t.Fatal(err)
	}
	q.mu.Lock()
	q.screen.Resize(cols, rows)
	q.mu.Unlock()
}

func (q *person) resize(cols, rows int) {
	q.t.Helper()
	q.sizes(cols, rows)
	q.winch <- struct{}{}
}

func (q *person) text() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.screen.Text(0)
}

func (q *person) sees(want string) {
	q.t.Helper()
	shows(q.t, want, q.text, q.attached)
}

// attached describes how far the attachment has come, for a test that fails.
func (q *person) attached() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := fmt.Sprintf("attached, %d bytes came", q.raw.Len())
	select {
	case res := <-q.result:
		q.result <- res
		s = fmt.Sprintf("Attach returned %+v, %v, after %d bytes", res, q.err, q.raw.Len())
	default:
	}
	return s
}

func (q *person) types(s string) {
	q.t.Helper()
	if _, err := q.master.WriteString(s); err != nil {
		q.t.Fatal(err)
	}
}

func (q *person) back() (AttachResult, error) {
	q.t.Helper()
	select {
	case r := <-q.result:
		q.mu.Lock()
		defer q.mu.Unlock()
		return r, q.err
	case <-time.After(patience):
		q.t.Fatal("the person is not back")
		panic("unreachable")
	}
}

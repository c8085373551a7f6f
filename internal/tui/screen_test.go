package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/openpty"
	"github.com/teamctl/teamctl/internal/view"
)

// terminal is a pty whose output a test can wait on.
type terminal struct {
	master, tty *os.File
	out         buffer
	bell        chan struct{}
	done        chan struct{}
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	master, tty, err := openpty.Open()
	if err != nil {
		t.Skipf("no pty: %v", err)
	}
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 60, Row: 12}); err != nil {
		t.Fatal(err)
	}
	x := &terminal{master: master, tty: tty, bell: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(x.done)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if n > 0 {
				_, _ = x.out.Write(buf[:n]) // never fails
				select {
				case x.bell <- struct{}{}:
				default:
				}
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		for _, f := range []io.Closer{tty, master} {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		<-x.done
	})
	return x
}

func (x *terminal) await(t *testing.T, want string) {
	t.Helper()
	late := time.After(60 * time.Second)
	for !strings.Contains(x.out.String(), want) {
		select {
		case <-x.bell:
		case <-late:
			t.Fatalf("waited for %q, have %q", want, x.out.String())
		}
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	x := openTerminal(t)
	before, err := term.GetState(int(x.tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	more := make(chan view.Snapshot)
	s := &Screen{In: x.tty, Out: x.tty}
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(t.Context(), func(ctx context.Context, each func(view.Snapshot)) error {
			for {
				select {
				case snap := <-more:
					each(snap)
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
	}()
	more <- sample()
	x.await(t, enter)
	x.await(t, "test ./ledger")
	x.await(t, "q quits")
	two := sample()
	two.Tasks[2].Subject = "something new"
	more <- two
	x.await(t, "something new")
	if _, err := x.master.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	x.await(t, leave)
	after, err := term.GetState(int(x.tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if *before != *after {
		t.Error("the terminal is not as it was found")
	}
}

// Where there is a way to leave, q takes it and the screen goes on; the end of the input
// and a failure to leave end it.
func TestScreenLeave(t *testing.T) {
	t.Parallel()
	x := openTerminal(t)
	left := make(chan error) // what leaving returns
	s := &Screen{In: x.tty, Out: x.tty, Leave: func(context.Context) error { return <-left }}
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(t.Context(), func(ctx context.Context, _ func(view.Snapshot)) error { <-ctx.Done(); return ctx.Err() })
	}()
	x.await(t, enter)
	for _, answer := range []error{nil, errors.New("no client")} {
		if _, err := x.master.WriteString("q"); err != nil {
			t.Fatal(err)
		}
		select {
		case left <- answer:
		case err := <-ended:
			t.Fatalf("ended instead: %v", err)
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	x.await(t, leave)
}

// Whatever ends the screen, it leaves the terminal, and says why.
func TestScreenEnds(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		src  Source
		keys string
		stop bool
		want error
	}{
		"source fails": {src: func(context.Context, func(view.Snapshot)) error { return boom }, want: boom},
		"context ends": {src: func(ctx context.Context, _ func(view.Snapshot)) error { <-ctx.Done(); return ctx.Err() }, stop: true},
		"ctrl-c":       {src: func(ctx context.Context, _ func(view.Snapshot)) error { <-ctx.Done(); return ctx.Err() }, keys: "\x03"},
	} {
		t.Run(name, func(t *testing.T) {
			x := openTerminal(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- (&Screen{In: x.tty, Out: x.tty}).Run(ctx, c.src) }()
			x.await(t, enter)
			if c.stop {
				cancel()
			}
			if _, err := x.master.WriteString(c.keys); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("Run: %v, want %v", err, c.want)
			}
			x.await(t, leave)
		})
	}
	t.Run("no terminal", func(t *testing.T) {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := (&Screen{In: f, Out: f}).Run(t.Context(), nil); err == nil {
			t.Error("no error")
		}
	})
}

package tmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/internal/proc"
)

// crowd starts launches that are all queued before the first of them is placed.
type crowd struct {
	rig    *backendtest.Rig
	b      *Backend
	h      backends.Handle // started before
	server *server
	work   sync.WaitGroup
	hs     []backends.Handle
	errs   []error
	cancel []context.CancelFunc
}

func newCrowd(t *testing.T, n int) *crowd {
	t.Helper()
	needControl(t)
	r := newRig(t)
	b := r.Open(t).(*Backend)
	c := &crowd{rig: r, b: b, h: mustStart(t, b, backendtest.Launch(t, r, "first", "idle"))}
	var err error
	if c.server, err = b.serverOf(c.h.Pane(), c.h.Proc().Shim.BootID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.server.ask(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	b.place.Lock()
	c.hs, c.errs, c.cancel = make([]backends.Handle, n), make([]error, n), make([]context.CancelFunc, n)
	for i := range n {
		l := backendtest.Launch(t, r, fmt.Sprintf("m%d", i), "idle")
		ctx, cancel := context.WithCancel(ctxFor(t))
		c.cancel[i] = cancel
		t.Cleanup(cancel)
		c.work.Go(func() { c.hs[i], c.errs[i] = b.Start(ctx, l) })
	}
	waitFor(t, "all wait", func() bool {
		b.queue.mu.Lock()
		defer b.queue.mu.Unlock()
		return len(b.queue.waiting) == n
	})
	return c
}

// wait waits for the starts, and checks that there is one pane per generation
// that is up, marked and with its output captured, in evenly tiled windows.
func (c *crowd) wait(t *testing.T) (up int) {
	t.Helper()
	c.work.Wait()
	names := map[string]bool{"first": true}
	for i, h := range c.hs {
		if c.errs[i] == nil {
			names[h.Launch().Agent] = true
			up++
		}
	}
	ps, err := c.server.panes(ctxFor(t), "-a")
	if err != nil {
		t.Fatal(err)
	}
	for _, win := range windows(ps) {
		for _, p := range win {
			if p.role != "lead" && (!names[p.agent] || !p.piped || p.dead) {
				t.Errorf("pane %+v; want a member's, marked and caught", p)
			}
			delete(names, p.agent)
		}
		if len(win) == 1 {
			continue
		}
		want, ok := tiled(win, 0)
		got, err := c.server.run(ctxFor(t), "display-message", "-p", "-t", win[0].window, "#{window_layout}")
		if err != nil || !ok || shape(got) != shape(want) {
			t.Errorf("window %s: %s, %v; want %s", win[0].window, got, err, want)
		}
	}
	if len(names) > 0 {
		t.Errorf("without a pane: %v", names)
	}
	return up
}

func (c *crowd) end(t *testing.T) {
	t.Helper()
	var ends sync.WaitGroup
	for _, h := range append(c.hs, c.h) {
		if h != nil {
			ends.Go(func() {
				err := h.Stop(ctxFor(t), time.Second)
				if err == nil {
					<-h.Exited()
					err = h.Dispose(ctxFor(t))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	ends.Wait()
}

// tapped intercepts the control client's input.
type tapped struct {
	io.WriteCloser
	writes atomic.Int32
	after  func(n int32)
}

func (w *tapped) Write(p []byte) (int, error) {
	n, err := w.WriteCloser.Write(p)
	if k := w.writes.Add(1); w.after != nil {
		w.after(k)
	}
	return n, err
}

func (c *crowd) tap(after func(*control, int32)) *tapped {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	conn := c.server.conn
	conn.mu.Lock()
	defer conn.mu.Unlock()
	w := &tapped{WriteCloser: conn.in, after: func(n int32) { after(conn, n) }}
	conn.in = w
	return w
}

// Launches queued together cost as many queries as a single one: the list, the
// panes, the rest. An additional window costs another round.
func TestPlacedTogether(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ n, questions int }{{1, 3}, {besideLead, 3}, {besideLead + 2, 6}} {
		t.Run(fmt.Sprint(k.n), func(t *testing.T) {
			c := newCrowd(t, k.n)
			w := c.tap(func(*control, int32) {})
			c.b.place.Unlock()
			c.work.Wait()
			if got := w.writes.Load(); int(got) != k.questions {
				t.Errorf("%d launches: %d questions; want %d", k.n, got, k.questions)
			}
			if up := c.wait(t); up != k.n {
				t.Errorf("%d are up: %v", up, errors.Join(c.errs...))
			}
			c.end(t)
		})
	}
}

// The control client dies after any of the queries: every launch is placed, and
// none twice.
func TestPlacedTogetherWithoutAnswers(t *testing.T) {
	t.Parallel()
	for fatal := range int32(3) {
		t.Run(fmt.Sprint(fatal+1), func(t *testing.T) {
			c := newCrowd(t, 4)
			c.tap(func(conn *control, n int32) {
				if n == fatal+1 {
					_ = conn.cmd.Process.Kill()
				}
			})
			c.b.place.Unlock()
			if up := c.wait(t); up != 4 {
				t.Errorf("%d are up: %v", up, errors.Join(c.errs...))
			}
			c.end(t)
		})
	}
}

// A caller that gives up while it waits, or while it is being placed with
// others, gets its error at once and leaves no pane; the others are not
// affected.
func TestGivenUpInTheQueue(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 3)
	c.cancel[0]()
	waitFor(t, "the first has left", func() bool {
		c.b.queue.mu.Lock()
		defer c.b.queue.mu.Unlock()
		return c.b.queue.waiting[0].left || c.b.queue.waiting[1].left || c.b.queue.waiting[2].left
	})
	if err := proc.Signal(c.server.id, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.b.place.Unlock()
	waitFor(t, "the others are being placed", func() bool {
		c.b.queue.mu.Lock()
		defer c.b.queue.mu.Unlock()
		return len(c.b.queue.round) == 2
	})
	c.cancel[1]()
	waitFor(t, "the second has left", func() bool {
		c.b.queue.mu.Lock()
		defer c.b.queue.mu.Unlock()
		return c.b.queue.round[0].left || c.b.queue.round[1].left
	})
	if err := proc.Signal(c.server.id, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.work.Wait()
	c.b.queue.work.Wait() // removes what was left
	if up := c.wait(t); up != 1 || c.errs[2] != nil {
		t.Errorf("%d are up: %v", up, errors.Join(c.errs...))
	}
	for _, err := range c.errs[:2] {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	}
	c.end(t)
}

// Close does not wait for a server that does not answer.
func TestCloseBreaksOffPlacing(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 2)
	if err := proc.Signal(c.server.id, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.b.place.Unlock()
	waitFor(t, "they are being placed", func() bool {
		c.b.queue.mu.Lock()
		defer c.b.queue.mu.Unlock()
		return len(c.b.queue.round) == 2
	})
	began := time.Now()
	err := c.b.Close()
	c.work.Wait()
	if took := time.Since(began); err != nil || took > undoWithin {
		t.Errorf("close: %v after %v", err, took)
	}
	for _, e := range c.errs {
		if e == nil || !strings.HasPrefix(e.Error(), "start m") {
			t.Errorf("a start that was broken off: %v", e)
		}
	}
	if err := proc.Signal(c.server.id, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a, err := c.rig.Open(t).Adopt(ctxFor(t), c.h.Launch().Bundle)
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, a)
}

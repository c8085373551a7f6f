package tmux

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
)

// Panes to be removed during another removal are removed together: the list,
// the kills, the remaining panes, the layouts. A pane that the user has closed
// is not an error, and a pane that contains a later process is kept.
func TestTakenAwayTogether(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, besideLead+1)
	c.b.place.Unlock()
	if up := c.wait(t); up != besideLead+1 {
		t.Fatalf("%d are up: %v", up, c.errs)
	}
	going, staying := c.hs[1:besideLead], []backends.Handle{c.h, c.hs[0], c.hs[besideLead]}
	var work sync.WaitGroup
	for _, h := range going {
		work.Go(func() {
			if err := h.Stop(ctxFor(t), time.Second); err != nil {
				t.Error(err)
			}
			<-h.Exited()
		})
	}
	work.Wait()

	// The pane of an earlier generation may contain the process of another one.
	if err := c.b.removePane(ctxFor(t), c.server, &removal{pane: c.h.Pane().PaneID, agent: "first", pid: 1}); err != nil {
		t.Error(err)
	}
	c.b.place.Lock()
	for _, h := range going {
		work.Go(func() {
			if err := h.Dispose(ctxFor(t)); err != nil {
				t.Errorf("dispose of %s: %v", h.Launch().Agent, err)
			}
		})
	}
	waitFor(t, "all wait", func() bool {
		c.b.removals.mu.Lock()
		defer c.b.removals.mu.Unlock()
		next := c.b.removals.next[c.server]
		return next != nil && len(next.rs) == len(going)
	})
	if _, err := c.server.run(ctxFor(t), "kill-pane", "-t", going[2].Pane().PaneID); err != nil {
		t.Fatal(err)
	}
	w := c.tap(func(*control, int32) {})
	c.b.place.Unlock()
	work.Wait()
	if n := w.writes.Load(); n != 4 {
		t.Errorf("%d panes were taken away with %d questions; want 4", len(going), n)
	}
	c.hs = staying[1:]
	c.errs = make([]error, len(c.hs))
	c.wait(t)
	c.end(t)
}

// A window linked into several sessions is laid out once, by its own panes.
func TestByWindow(t *testing.T) {
	t.Parallel()
	ps := []pane{
		{id: "%0", window: "@0", session: "$0"}, {id: "%1", window: "@0", session: "$0"},
		{id: "%0", window: "@0", session: "$1"}, {id: "%1", window: "@0", session: "$1"},
		{id: "%2", window: "@1", session: "$1"},
	}
	got := byWindow(ps)
	ids := func(ps []pane) string {
		var out []string
		for _, p := range ps {
			out = append(out, p.id)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	if len(got) != 2 || ids(got["@0"]) != "%0 %1" || ids(got["@1"]) != "%2" {
		t.Errorf("%v", got)
	}
}

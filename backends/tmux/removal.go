package tmux

import (
	"context"
	"errors"
	"sync"
	"time"
)

// removals collects the panes to remove. A window needs a new layout when panes
// have left it, which requires a list of them all: removals that arrive while
// others are in progress are done together, with as many queries to tmux as a
// single one.
type removals struct {
	mu   sync.Mutex
	next map[*server]*clearing // not begun yet; others may join
}

// clearing is a group of panes removed together. The errors are set before done
// is closed.
type clearing struct {
	done chan struct{}
	rs   []*removal
}

// removal is one pane, which must still belong to this agent and contain this
// process: a later generation may have it.
type removal struct {
	pane, agent string
	pid         int
	err         error
}

// removeWithin limits the removal of one group.
const removeWithin = 30 * time.Second

// removePane removes a pane of s. If the caller's ctx ends it does not wait,
// but the pane is still removed.
func (b *Backend) removePane(ctx context.Context, s *server, r *removal) error {
	q := &b.removals
	q.mu.Lock()
	if c := q.next[s]; c != nil {
		c.rs = append(c.rs, r)
		q.mu.Unlock()
		select {
		case <-c.done:
			return r.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	c := &clearing{done: make(chan struct{}), rs: []*removal{r}}
	if q.next == nil {
		q.next = map[*server]*clearing{}
	}
	q.next[s] = c
	q.mu.Unlock()
	defer close(c.done)

	b.place.Lock()
	defer b.place.Unlock()
	q.mu.Lock()
	delete(q.next, s)
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	s.removeAll(ctx, c.rs)
	return r.err
}

// remove kills a pane and tidies the window that it leaves.
func (s *server) remove(ctx context.Context, p pane) error {
	r := &removal{pane: p.id, agent: p.agent, pid: p.pid}
	s.removeAll(ctx, []*removal{r})
	return r.err
}

// removeAll kills panes and tidies the windows that they leave. A pane that no
// longer exists is not an error.
func (s *server) removeAll(ctx context.Context, rs []*removal) {
	ps, err := s.panes(ctx, "-a")
	if err != nil {
		fail(rs, err)
		return
	}
	at := byID(ps)
	var going []*removal
	var kills [][][]string
	windows := map[string][]*removal{} // that lose panes
	for _, r := range rs {
		p, ok := at[r.pane]
		if !ok || p.agent != r.agent || p.pid != r.pid {
			continue
		}
		going, kills = append(going, r), append(kills, [][]string{{"kill-pane", "-t", r.pane}})
		windows[p.window] = append(windows[p.window], r)
	}
	if len(going) == 0 {
		return
	}
	for i, a := range s.groups(ctx, kills...) {
		going[i].err = a.err
	}
	if ps, err = s.panes(ctx, "-a"); err != nil {
		fail(going, err)
		return
	}
	at = byID(ps)
	for _, r := range going {
		if _, ok := at[r.pane]; !ok { // it does not matter which process has killed it
			r.err = nil
		}
	}
	s.tidyAll(ctx, ps, windows)
}

// tidyAll tidies the windows that panes have left, ps being all remaining
// panes.
func (s *server) tidyAll(ctx context.Context, ps []pane, left map[string][]*removal) {
	var where []string
	var layouts [][][]string
	for window, now := range byWindow(ps) {
		if left[window] == nil {
			continue
		}
		if layout, ok := tiled(now, 0); ok && !now[0].zoomed {
			where = append(where, window)
			layouts = append(layouts, [][]string{{"select-layout", "-t", window, layout}})
		}
		if !s.private {
			fail(left[window], s.restoreOptions(ctx, window))
		}
	}
	if len(layouts) == 0 {
		return
	}
	for i, a := range s.groups(ctx, layouts...) {
		if a.err != nil { // the window has changed since it was listed
			fail(left[where[i]], s.relayout(ctx, where[i]))
		}
	}
}

// fail adds an error to all removals.
func fail(rs []*removal, err error) {
	for _, r := range rs {
		r.err = errors.Join(r.err, err)
	}
}

func byID(ps []pane) map[string]pane {
	at := make(map[string]pane, len(ps))
	for _, p := range ps {
		at[p.id] = p
	}
	return at
}

// byWindow groups a list of all panes. A window linked into several sessions is
// listed once for each.
func byWindow(ps []pane) map[string][]pane {
	at := map[string][]pane{}
	for _, p := range ps {
		if now := at[p.window]; len(now) == 0 || now[0].session == p.session {
			at[p.window] = append(now, p)
		}
	}
	return at
}

package tmux

import (
	"context"
	"strings"
	"sync"
	"time"
)

// retileWithin limits the laying out of the windows whose size has changed.
const retileWithin = 10 * time.Second

// windowRef names a window of a server.
type windowRef struct {
	server *server
	id     string
}

// resizes are the windows of the private server whose size has changed since they were
// laid out. tmux scales a layout when a client of another size attaches, which leaves
// some panes with a few columns and gives others all the rest.
//
// mu is taken by the reader of a control connection: whoever holds it takes no other
// lock.
type resizes struct {
	mu      sync.Mutex
	sizes   map[windowRef]string // last known, "200x50"; "zoomed": laid out at any
	pending map[windowRef]bool
	running bool
	closed  bool
	cancel  context.CancelFunc // of what runs
	work    sync.WaitGroup
}

// notified takes a line of a control client that answers no command. A zoomed window keeps the
// size that is known of it: tmux prints a line again when it is unzoomed.
func (b *Backend) notified(s *server, line string) {
	rest, ok := strings.CutPrefix(line, "%layout-change ")
	if !ok {
		return
	}
	// %layout-change @1 b25f,80x24,0,0,2 b25f,80x24,0,0,2 *Z
	if f := strings.Fields(rest); len(f) >= 2 && (len(f) < 4 || !strings.Contains(f[3], "Z")) {
		if layout := strings.Split(f[1], ","); len(layout) >= 2 {
			b.sized(windowRef{s, f[0]}, layout[1])
		}
	}
}

// look compares the windows with what is known of them: they may have changed while no
// control client was connected.
func (b *Backend) look(ctx context.Context, s *server, c *control) {
	out, err := c.run(ctx, "list-windows", "-F", "#{window_id} #{window_width}x#{window_height} #{window_zoomed_flag}")
	if err != nil {
		return // a window without a known size keeps its layout
	}
	for l := range strings.Lines(out) {
		if f := strings.Fields(l); len(f) == 3 && f[2] == "0" {
			b.sized(windowRef{s, f[0]}, f[1])
		}
	}
}

// sized notes the size of a window, and lays it out again if that has changed. It does not
// wait: the connection that the layout needs may be read by the caller.
func (b *Backend) sized(w windowRef, size string) {
	r := &b.resizes
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sizes == nil {
		r.sizes, r.pending = map[windowRef]string{}, map[windowRef]bool{}
	}
	known := r.sizes[w]
	r.sizes[w] = size
	if known == "" || known == size || r.closed {
		return
	}
	r.pending[w] = true
	if !r.running {
		r.running = true
		ctx, cancel := context.WithCancel(context.Background())
		r.cancel = cancel
		r.work.Go(func() {
			defer cancel()
			b.retile(ctx)
		})
	}
}

// retile lays out the pending windows, each once however often its size has changed.
func (b *Backend) retile(ctx context.Context) {
	for {
		windows := b.resizes.take()
		if len(windows) == 0 {
			return
		}
		b.place.Lock()
		within, cancel := context.WithTimeout(ctx, retileWithin)
		for _, w := range windows {
			if err := w.server.relayout(within, w.id); err != nil {
				b.log.Debug("lay out a window of another size", "window", w.id, "err", err)
			}
		}
		cancel()
		b.place.Unlock()
	}
}

// take returns the pending windows. Without any the caller has to end.
func (r *resizes) take() (windows []windowRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.pending {
		windows = append(windows, w)
	}
	clear(r.pending)
	r.running = len(windows) > 0
	return windows
}

// whenUnzoomed has a window, which is zoomed, laid out with the next line of tmux that shows all of it.
func (r *resizes) whenUnzoomed(w windowRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sizes[w] != "" {
		r.sizes[w] = "zoomed"
	}
}

// forget drops what is known of a server that is replaced.
func (r *resizes) forget(s *server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.sizes {
		if w.server == s {
			delete(r.sizes, w)
		}
	}
}

// close ends the work and waits for it.
func (r *resizes) close() {
	r.mu.Lock()
	r.closed = true
	clear(r.pending)
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	r.work.Wait()
}

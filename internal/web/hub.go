package web

import (
	"context"
	"sync"

	"github.com/teamctl/teamctl/internal/view"
)

// tasksShown is how many tasks that nobody works on are read.
const tasksShown = 300

// hub follows a team for all who look at it, as long as somebody does.
type hub struct {
	stop  context.CancelFunc
	ended chan struct{}
	users int

	mu   sync.Mutex
	last *view.Snapshot
	err  error
	next chan struct{} // closed by the next change
}

// watch joins the hub of a team; leave is called once.
func (s *Server) watch(ctx context.Context, name string, t view.Team) (h *hub, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hubs == nil {
		s.hubs = map[string]*hub{}
	}
	h = s.hubs[name]
	if h == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		h = &hub{stop: stop, ended: make(chan struct{}), next: make(chan struct{})}
		s.hubs[name] = h
		go func() {
			defer close(h.ended)
			err := t.Follow(ctx, func() view.Interest { return view.Interest{Tasks: tasksShown} }, func(x view.Snapshot) { h.set(&x, nil) })
			if ctx.Err() == nil {
				h.set(nil, err)
			}
		}()
	}
	h.users++
	return h, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.users--; h.users > 0 {
			return
		}
		if s.hubs[name] == h {
			delete(s.hubs, name)
		}
		h.stop()
		<-h.ended
	}
}

func (h *hub) set(x *view.Snapshot, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x != nil {
		h.last = x
	}
	h.err = err
	close(h.next)
	h.next = make(chan struct{})
}

func (h *hub) get() (*view.Snapshot, <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, h.next, h.err
}

// snapshot returns the team as it is now.
func (s *Server) snapshot(ctx context.Context, name string, t view.Team) (view.Snapshot, error) {
	h, leave := s.watch(ctx, name, t)
	defer leave()
	for {
		x, next, err := h.get()
		switch {
		case err != nil:
			return view.Snapshot{}, err
		case x != nil:
			return *x, nil
		}
		select {
		case <-next:
		case <-h.ended:
			if x, _, err := h.get(); x == nil && err == nil {
				return view.Snapshot{}, context.Canceled
			}
		case <-ctx.Done():
			return view.Snapshot{}, ctx.Err()
		}
	}
}

package web

import (
	"context"
	"sync"

	"github.com/teamctl/teamctl/internal/view"
)

// tasksShown is how many tasks that nobody works on are read.
const tasksShown = 300

// hub follows something, a team or the list of teams, for all clients that show it, as long as there
// are any.
type hub[T any] struct {
	stop  context.CancelFunc
	ended chan struct{}
	users int

	mu   sync.Mutex
	last *T
	err  error
	next chan struct{} // closed by the next change
}

// watch joins the hub of a team; leave is called once.
func (s *Server) watch(ctx context.Context, name string, t view.Team) (h *hub[view.Snapshot], leave func()) {
	return join(ctx, &s.mu, &s.hubs, name, func(ctx context.Context, each func(view.Snapshot)) error {
		return t.Follow(ctx, func() view.Interest { return view.Interest{Tasks: tasksShown} }, each)
	})
}

// watchTeams joins the hub of the list of teams; leave is called once.
func (s *Server) watchTeams(ctx context.Context) (h *hub[[]view.Glance], leave func()) {
	return join(ctx, &s.mu, &s.lists, "", func(ctx context.Context, each func([]view.Glance)) error {
		return s.Home.Teams(ctx, nil, each)
	})
}

// join joins the hub with a name; follow runs while it has users.
func join[T any](ctx context.Context, mu *sync.Mutex, hubs *map[string]*hub[T], name string, follow func(context.Context, func(T)) error) (h *hub[T], leave func()) {
	mu.Lock()
	defer mu.Unlock()
	if *hubs == nil {
		*hubs = map[string]*hub[T]{}
	}
	h = (*hubs)[name]
	if h == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		h = &hub[T]{stop: stop, ended: make(chan struct{}), next: make(chan struct{})}
		(*hubs)[name] = h
		go func() {
			defer close(h.ended)
			err := follow(ctx, func(x T) { h.set(&x, nil) })
			if ctx.Err() == nil {
				h.set(nil, err)
			}
		}()
	}
	h.users++
	return h, func() {
		mu.Lock()
		defer mu.Unlock()
		if h.users--; h.users > 0 {
			return
		}
		if (*hubs)[name] == h {
			delete(*hubs, name)
		}
		h.stop()
		<-h.ended
	}
}

func (h *hub[T]) set(x *T, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x != nil {
		h.last = x
	}
	h.err = err
	close(h.next)
	h.next = make(chan struct{})
}

func (h *hub[T]) get() (*T, <-chan struct{}, error) {
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

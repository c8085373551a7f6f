package tmux

import (
	"context"
	"slices"
	"sync"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

// queue collects the launches that need a pane in the private server's windows.
// Each query to tmux costs two process switches, and only one launch at a time
// may change a window: those that arrive while others are being placed are
// placed together, with as many queries as a single one.
type queue struct {
	work sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	waiting []*request
	round   []*request // being placed
	cancel  context.CancelFunc
}

// request is one launch. at and err are set before done is closed.
type request struct {
	launch backends.Launch
	argv   []string
	done   chan struct{}
	at     placed
	err    error
	again  bool // the server that was about to place it died
	left   bool // its caller no longer waits; guarded by queue.mu
}

// put waits for the launch's pane. A caller whose ctx ends gets no pane: if one
// is still created for it, it is removed.
func (q *queue) put(ctx context.Context, b *Backend, l backends.Launch) (placed, error) {
	r := &request{launch: l, argv: b.starter.Command(l), done: make(chan struct{})}
	if err := q.add(b, r); err != nil {
		return placed{}, err
	}
	select {
	case <-r.done:
		return r.at, r.err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-r.done: // just completed
		return r.at, r.err
	default:
	}
	r.left = true
	if q.cancel != nil && !slices.ContainsFunc(q.round, func(r *request) bool { return !r.left }) {
		q.cancel()
	}
	return placed{}, context.Cause(ctx)
}

func (q *queue) add(b *Backend, r *request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return team.Errorf(team.CodeUnavailable, "the tmux backend is closed")
	}
	q.waiting = append(q.waiting, r)
	if len(q.waiting) == 1 {
		q.work.Go(func() { q.serve(b) })
	}
	return nil
}

// serve places everything that is waiting once the windows are free.
func (q *queue) serve(b *Backend) {
	b.place.Lock()
	defer b.place.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	q.mu.Lock()
	q.round = slices.DeleteFunc(q.waiting, func(r *request) bool { return r.left })
	q.waiting, q.cancel = nil, cancel
	if q.closed {
		cancel()
	}
	rs := q.round
	q.mu.Unlock()
	b.placeAll(ctx, rs)
	q.mu.Lock()
	q.round, q.cancel = nil, nil
	q.mu.Unlock()
}

// finish passes the result of a request to its caller.
func (b *Backend) finish(ctx context.Context, r *request, at placed, err error) {
	b.queue.mu.Lock()
	r.at, r.err = at, err
	left := r.left
	close(r.done)
	b.queue.mu.Unlock()
	if left && err == nil {
		at.server.drop(ctx, at.pane.PaneID)
		_ = at.server.relayout(ctx, at.pane.WindowID) // only affects appearance
	}
}

// close cancels the placement in progress and waits for it.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	if q.cancel != nil {
		q.cancel()
	}
	q.mu.Unlock()
	q.work.Wait()
}

package filelock

import (
	"context"
	"sync"
)

// slot is the semaphore of one path. A channel with one token serves waiting
// goroutines in order of arrival and supports waiting with a context.
type slot struct {
	key   string
	users int // holders and waiters, guarded by table.mu
	token chan struct{}

	mu   sync.Mutex
	left *waiter // an abandoned place in the queue that has not been reached yet
}

// table maps paths to slots; a path that is not in use has none.
type table struct {
	mu sync.Mutex
	m  map[string]*slot
}

// slots must be the only table of the process: two packages that lock one path
// must share its slot.
var slots = table{m: make(map[string]*slot)}

func (t *table) get(key string) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.m[key]
	if s == nil {
		s = &slot{key: key, token: make(chan struct{}, 1)}
		t.m[key] = s
	}
	s.users++
	return s
}

// keep adds a user to s, which is in use.
func (t *table) keep(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.users++
}

func (t *table) put(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(t.m, s.key)
	}
}

func (s *slot) acquire(ctx context.Context) error {
	select {
	case s.token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slot) tryAcquire() bool {
	select {
	case s.token <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *slot) release() { <-s.token }

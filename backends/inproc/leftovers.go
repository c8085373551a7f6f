package inproc

import (
	"sync"

	"github.com/teamctl/teamctl/internal/proc"
)

// leftovers determines whether commands of an agent outlive it. That requires a
// scan of all processes: agents that end at the same time share one.
type leftovers struct {
	look func() (map[string]bool, error) // returns the generations found in the environments of processes

	mu      sync.Mutex
	looking bool
	next    *glance // for callers since the running scan began
}

type glance struct {
	done    chan struct{}
	carried map[string]bool
	err     error
}

func newLeftovers() *leftovers { return &leftovers{look: proc.Generations} }

// of reports whether a process may belong to the generation, from a scan that
// begins after the call.
func (l *leftovers) of(gen string) bool {
	l.mu.Lock()
	if l.next == nil {
		l.next = &glance{done: make(chan struct{})}
	}
	mine := l.next
	if l.looking {
		l.mu.Unlock()
		<-mine.done
		return mine.err != nil || mine.carried[gen]
	}
	l.looking = true
	for l.next != nil { // also for callers that arrive meanwhile
		g := l.next
		l.next = nil
		l.mu.Unlock()
		g.carried, g.err = l.look()
		close(g.done)
		l.mu.Lock()
	}
	l.looking = false
	l.mu.Unlock()
	return mine.err != nil || mine.carried[gen]
}

package inproc

import (
	"sync"

	"github.com/teamctl/teamctl/internal/proc"
)

// leftovers finds out whether commands of an agent outlive it. That takes a look at
// every process of the machine: agents that end at once share one.
type leftovers struct {
	look func() (map[string]bool, error) // the generations that processes carry

	mu      sync.Mutex
	looking bool
	next    *glance // of those who came since the look under way began
}

type glance struct {
	done    chan struct{}
	carried map[string]bool
	err     error
}

func newLeftovers() *leftovers { return &leftovers{look: proc.Generations} }

// of reports whether a process may be of the generation, by a look that begins after
// the call.
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
	for l.next != nil { // also for those who come meanwhile
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

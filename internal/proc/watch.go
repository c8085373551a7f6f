package proc

import (
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
)

// pollEvery is the interval at which a process is checked if the system has no
// event for its end.
const pollEvery = 250 * time.Millisecond

// Watcher reports the death of one process. It costs a descriptor and a parked
// goroutine, no thread.
type Watcher struct {
	done    chan struct{}
	stop    func() // unblocks the wait; the goroutine then ends without closing done
	stopped sync.WaitGroup
	once    sync.Once
}

// Watch watches a process, which need not be a child. For a process that has
// already ended it returns a Watcher whose Done is closed. An error concerns
// the means (descriptors), not the process.
func Watch(id backends.ProcID) (*Watcher, error) {
	w := &Watcher{done: make(chan struct{}), stop: func() {}}
	if !Alive(id) {
		close(w.done)
		return w, nil
	}
	wait, stop, err := watch(id)
	if err != nil {
		return nil, err
	}
	if wait == nil { // died between the check and the watch
		close(w.done)
		return w, nil
	}
	w.stop = stop
	w.stopped.Add(1)
	go func() {
		defer w.stopped.Done()
		if wait() {
			close(w.done)
		}
	}()
	return w, nil
}

// Done returns a channel that is closed when the process has died (a zombie
// has). After Close it may stay open for ever.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Close ends the watch and waits for its goroutine.
func (w *Watcher) Close() {
	w.once.Do(w.stop)
	w.stopped.Wait()
}

// poll is the fallback without events.
func poll(id backends.ProcID) (wait func() bool, stop func(), err error) {
	quit := make(chan struct{})
	wait = func() bool {
		t := time.NewTicker(pollEvery)
		defer t.Stop()
		for {
			select {
			case <-quit:
				return false
			case <-t.C:
				if !Alive(id) {
					return true
				}
			}
		}
	}
	return wait, func() { close(quit) }, nil
}

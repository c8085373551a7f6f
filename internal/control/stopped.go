package control

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/teamctl/teamctl/team"
)

// A supervisor that is stopped before it listens, or after it has closed its socket, is known only
// by its locks. A starter therefore checks the processes that it waits for: the one that it has
// launched, the holder of a supervisor's locks, and the command that is starting one. It waits for
// a slow start without limit, but not for a stopped one.

// findEvery is how many samples are taken before the next search for a stopped process. To find the
// holder of a lock costs more than the sample of a known process, and most starts end before it.
const findEvery = 5

// startWatch watches those that a start waits for.
type startWatch struct {
	layout team.Layout
	child  atomic.Int64 // the supervisor that was launched
	cancel context.CancelCauseFunc
	done   chan struct{}
	lost   error
}

// watchStart ends the context when one of those is stopped. stop has to be called with
// the error of the start, which becomes the reason.
func watchStart(ctx context.Context, l team.Layout) (context.Context, *startWatch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &startWatch{layout: l, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(aliveLooks)
		defer tick.Stop()
		for n, s := 1, (stoppage{}); w.lost == nil; n++ {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if s.pid == 0 && n%findEvery != 0 {
					continue
				}
				if pid := s.look(s.still(w.stopped), now); pid != 0 {
					w.lost = w.why(pid)
					cancel(w.lost)
				}
			}
		}
	}()
	return ctx, w
}

func (w *startWatch) stop(err *error) {
	w.cancel(context.Canceled)
	<-w.done
	if *err != nil && w.lost != nil {
		*err = w.lost
	}
}

// why is the error for a process that is stopped.
func (w *startWatch) why(pid int) error {
	if pid == holder(w.layout.StartingLock()) {
		return team.Errorf(team.CodeUnavailable, "process %d, which starts the supervisor, is stopped", pid).
			WithReason(team.ReasonHung).WithHint(fmt.Sprintf("kill -CONT %d lets it go on; kill -9 %d ends it", pid, pid))
	}
	return hung(pid, "it is stopped")
}

// stopped returns a stopped process that the start waits for, 0 if there is none.
func (w *startWatch) stopped() int {
	if pid := int(w.child.Load()); pid != 0 && activity(pid) == doingStopped {
		return pid
	}
	return stoppedHolder(w.layout.SupervisorLock(), w.layout.RuntimeLock(), w.layout.StartingLock())
}

// silently is the error for a supervisor that has no socket, or none any more, and is
// stopped; nil for any other.
func silently(ctx context.Context, lock string) error {
	pid := stoppedHolder(lock)
	if pid == 0 {
		return nil
	}
	tick := time.NewTicker(aliveLooks)
	defer tick.Stop()
	for s := (stoppage{}); pid != 0; pid = s.still(func() int { return stoppedHolder(lock) }) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-tick.C:
			if s.look(pid, now) != 0 {
				return hung(pid, "it is stopped")
			}
		}
	}
	return nil
}

// stoppage adds up how long one process is seen stopped.
type stoppage struct {
	pid int
	s   silence
}

// still returns the process of the last sample if it is still stopped, else that of find: a stopped
// process keeps its locks, but the kernel's table of a busy machine does not always show them.
func (s *stoppage) still(find func() int) int {
	if s.pid != 0 && activity(s.pid) == doingStopped {
		return s.pid
	}
	return find()
}

// look takes one more sample, of a process that is stopped or 0. It returns the process
// once it has been stopped for stoppedFor.
func (s *stoppage) look(pid int, now time.Time) int {
	if pid == 0 || pid != s.pid {
		s.pid, s.s = pid, silence{last: now}
		return 0
	}
	if s.s.look(doingStopped, now) == "" {
		return 0
	}
	return pid
}

// stoppedHolder returns a stopped process that holds one of the locks, 0 if there is none.
func stoppedHolder(locks ...string) int {
	for _, path := range locks {
		if !isHeld(path) {
			continue // for a lock that is not in the kernel's table, holder reads it several times
		}
		if pid := holder(path); pid != 0 && pid != os.Getpid() && activity(pid) == doingStopped {
			return pid
		}
	}
	return 0
}

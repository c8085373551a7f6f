package proc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends"
)

const (
	// rescanEvery limits how long a process forked during a scan stays
	// unnoticed: its start gives no event.
	rescanEvery = 200 * time.Millisecond
	// rescanMost is the interval to which that grows while processes ignore
	// SIGTERM: each scan reads the whole process table.
	rescanMost = time.Second
	// killWithin limits the last phase: a process that survives SIGKILL that
	// long hangs in the kernel.
	killWithin = 10 * time.Second
)

// KillTree ends the roots, all their descendants and everything of the
// generation (gen may be empty), and returns when none of it is alive: it sends
// SIGTERM and SIGCONT (a stopped process handles no SIGTERM) to each process as
// it is found, and SIGKILL to what is left after grace. ended counts the living
// processes that were signalled. A cancelled ctx shortens the grace but does
// not stop the killing. The error names processes that have survived SIGKILL
// for ten seconds.
func KillTree(ctx context.Context, roots []backends.ProcID, gen string, grace time.Duration) (ended int, err error) {
	return KillTreeIn(ctx, nil, roots, gen, grace)
}

// KillTreeIn is KillTree for processes in a group (nil for none): everything in
// it is found, however it hides, and SIGKILL is sent to the group as a whole,
// so that no process can escape by forking. A frozen group is thawed.
func KillTreeIn(ctx context.Context, g Group, roots []backends.ProcID, gen string, grace time.Duration) (ended int, err error) {
	return (*Looks)(nil).KillTree(ctx, g, roots, gen, grace)
}

// KillTree is KillTreeIn with shared scans of the process table.
func (l *Looks) KillTree(ctx context.Context, g Group, roots []backends.ProcID, gen string, grace time.Duration) (ended int, err error) {
	k := killer{looks: l, roots: roots, gen: gen, group: g, told: map[backends.ProcID]bool{}}
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	if grace > 0 {
		k.thaw(ctx)
		if done := k.phase(ctx.Done(), deadline.C, syscall.SIGTERM, syscall.SIGCONT); done {
			return len(k.told), nil
		}
	}
	limit := time.NewTimer(killWithin)
	defer limit.Stop()
	if done := k.phase(nil, limit.C, syscall.SIGKILL); done {
		return len(k.told), nil
	}
	left, err := k.living()
	if err != nil {
		return len(k.told), fmt.Errorf("end process tree: %w", err)
	}
	return len(k.told), fmt.Errorf("end process tree: %d processes survive SIGKILL: %w", len(left), errStuck{left})
}

// errStuck contains the survivors.
type errStuck struct{ ids []backends.ProcID }

func (e errStuck) Error() string {
	pids := make([]int, 0, len(e.ids))
	for _, id := range e.ids {
		pids = append(pids, id.PID)
	}
	return fmt.Sprintf("pids %v", pids)
}

type killer struct {
	looks *Looks
	roots []backends.ProcID
	gen   string
	group Group
	told  map[backends.ProcID]bool // alive when they were signalled
	// spared: the group contains processes that must not be ended.
	spared bool
}

// living returns the processes to end that are still alive. It remembers those
// already signalled, because a child of a dead one now has another parent.
func (k *killer) living() ([]backends.ProcID, error) {
	set := map[backends.ProcID]bool{}
	for _, id := range k.roots {
		set[id] = true
	}
	for id := range k.told {
		set[id] = true
	}
	seen, err := k.looks.look()
	if err != nil {
		return nil, err
	}
	for _, id := range seen.ofGeneration(k.gen) {
		set[id] = true
	}
	grouped, err := k.grouped()
	if err != nil {
		return nil, err
	}
	for _, id := range grouped {
		set[id] = true
	}
	var top []backends.ProcID
	for id := range set {
		// A process that has died since may have left children, which are below
		// it in this scan.
		if seen.lived(id) || Alive(id) {
			top = append(top, id)
		}
	}
	return append(top, seen.below(top)...), nil
}

// phase signals every process once, as it appears, and reports whether none is
// left. If the process table cannot be read, it assumes that some are.
func (k *killer) phase(cancel <-chan struct{}, deadline <-chan time.Time, sigs ...syscall.Signal) bool {
	sent := map[backends.ProcID]bool{}
	kills := slices.Contains(sigs, syscall.SIGKILL)
	for every := rescanEvery; ; every = min(every*3/2, rescanMost) {
		if kills {
			every = rescanEvery
		}
		left, err := k.living()
		if err == nil && len(left) == 0 {
			return true
		}
		for _, id := range left {
			if sent[id] {
				continue
			}
			sent[id] = true
			for _, s := range sigs {
				if err := Signal(id, s); !errors.Is(err, ErrGone) {
					k.told[id] = true
				}
			}
		}
		if kills {
			k.killGroup()
		}
		if !waitAll(left, every, err != nil, cancel, deadline) {
			left, err := k.living()
			return err == nil && len(left) == 0
		}
	}
}

// waitAll waits until all have died or it is time for another scan (true), or
// until the phase is over (false).
func waitAll(ids []backends.ProcID, every time.Duration, pause bool, cancel <-chan struct{}, deadline <-chan time.Time) bool {
	again := time.NewTimer(every)
	defer again.Stop()
	for _, id := range ids {
		w, err := Watch(id)
		if err != nil { // no descriptor left: scan again later
			pause = true
			continue
		}
		timeUp, over := false, false
		select {
		case <-w.Done():
		case <-again.C:
			timeUp = true
		case <-cancel:
			over = true
		case <-deadline:
			over = true
		}
		w.Close()
		if timeUp || over {
			return !over
		}
	}
	if !pause {
		return true
	}
	select {
	case <-again.C:
		return true
	case <-cancel:
		return false
	case <-deadline:
		return false
	}
}

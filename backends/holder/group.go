package holder

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// GroupOf returns the control group in which a generation was started, for
// proc.KillTreeIn; nil if it no longer has one.
func GroupOf(b team.Bundle, gen string) proc.Group {
	if g := groupOf(b, gen); g != nil {
		return g
	}
	return nil
}

func groupOf(b team.Bundle, gen string) *cgroup.Group {
	f, err := bundle.ReadGroup(b, gen)
	if err != nil || gen == "" {
		return nil
	}
	g, err := cgroup.Open(f.Path)
	if err != nil {
		return nil
	}
	return g
}

// EndRest ends what a dead shim, or a failed start, left of a generation, and
// removes its control group. It returns what proc.KillTree does; looks may be
// nil.
func EndRest(ctx context.Context, looks *proc.Looks, b team.Bundle, gen string, roots []backends.ProcID, grace time.Duration) (ended int, err error) {
	ended, err = looks.KillTree(ctx, GroupOf(b, gen), roots, gen, grace)
	// Again: a shim that was starting may have created it meanwhile.
	if g := groupOf(b, gen); err == nil && g != nil {
		_ = g.Remove() // what is still alive in it does not belong to the agent
	}
	return ended, err
}

// shimGrace is how long a shim has to record the end of its agent.
const shimGrace = 5 * time.Second

// EndAll ends a generation whose files may have lost their names, with its
// shim, and returns when the shim is dead too: until then it could be adopted.
func EndAll(ctx context.Context, b team.Bundle, gen string, roots []backends.ProcID, grace time.Duration) error {
	if _, err := EndRest(ctx, nil, b, gen, roots, grace); err != nil {
		return err
	}
	pr, err := bundle.ReadProc(b, gen)
	if err != nil || !proc.Alive(pr.Shim) {
		return nil // not recorded in this bundle
	}
	_ = proc.Signal(pr.Shim, unix.SIGCONT) // it must reap
	w, err := proc.Watch(pr.Shim)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, wait := range []time.Duration{shimGrace, 2 * shimGrace} {
		t := time.NewTimer(wait)
		select {
		case <-w.Done():
			t.Stop()
			return nil
		case <-t.C: // it hangs, or was stopped again
			_ = proc.Signal(pr.Shim, unix.SIGKILL)
		}
	}
	return team.Errorf(team.CodeTimeout, "the shim of %s, pid %d, survives SIGKILL", gen, pr.Shim.PID)
}

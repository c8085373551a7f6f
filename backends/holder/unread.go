package holder

import (
	"context"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Any program may damage a bundle: replace its files by something else,
// truncate them, or make them unreadable. A member's state is then determined,
// and the member ended, by what needs no file: the run lock, the process table
// and the control group.

// unreadWithin limits the wait for a shim whose agent was ended, and
// unreadEvery is the interval at which its lock is checked.
const (
	unreadWithin = 10 * time.Second
	unreadEvery  = 20 * time.Millisecond
)

// EndUnread ends a generation whose bundle cannot be read: the holder of its
// run lock, the processes with the generation in their environment or in its
// control group, and all their descendants. It returns how the generation
// ended, as far as can be known. The error names what is still alive.
func EndUnread(ctx context.Context, looks *proc.Looks, b team.Bundle, key, agent, gen string, grace time.Duration) (backends.Exit, error) {
	var roots []backends.ProcID
	if id, ok := lockHolder(b.RunLock()); ok {
		roots = append(roots, id)
	}
	g := groupOf(b, gen)
	if g == nil {
		g, _ = cgroup.Find(cgroup.Name(key, agent, gen)) // there may be none
	}
	var group proc.Group
	if g != nil {
		group = g
	}
	ended, err := looks.KillTree(ctx, group, roots, gen, grace)
	if err == nil {
		err = awaitRelease(ctx, b)
	}
	if err != nil {
		return backends.Exit{}, fmt.Errorf("end the remaining processes of %s: %w", agent, err)
	}
	if g != nil {
		_ = g.Remove() // what is still alive in it does not belong to the agent
	}
	e, err := bundle.ReadExit(b, gen)
	if err != nil {
		e = backends.Exit{Generation: gen, Code: -1, At: time.Now(), Leftover: ended, Reason: team.WhyFilesLost}
	}
	return e, nil
}

// awaitRelease waits until the run lock is released. A lock that cannot be read
// is ignored.
func awaitRelease(ctx context.Context, b team.Bundle) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unreadWithin)
	defer cancel()
	t := time.NewTicker(unreadEvery)
	defer t.Stop()
	for {
		if held, err := bundle.Running(b); err != nil || !held {
			return nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return team.Errorf(team.CodeTimeout, "its run lock %s is held by an unknown process", b.RunLock()).
				WithHint("find the process with: lsof " + team.ShellQuote(b.RunLock()))
		}
	}
}

package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// group is the part of cgroup.Group that the shim needs after creating it.
type group interface {
	proc.Group
	FD() (*os.File, error)
	Path() string
	OOMKills() (int64, error)
	Remove() error
}

// contain creates the agent's control group, with its limits. If that fails the
// agent still runs, and proc.json contains the reason.
func (s *state) contain() {
	l := s.launch
	g, err := cgroup.Create(cgroup.Name(l.Team, l.Agent, l.Generation))
	if err == nil {
		err = bundle.WriteGroup(s.bundle, bundle.Group{Generation: l.Generation, Path: g.Path()})
		if err != nil {
			_ = g.Remove()
		}
	}
	if err != nil {
		s.uncontained = why(err)
		return
	}
	s.group = g
	a, err := g.SetLimits(l.Limits)
	if err != nil {
		_ = fail(err, 0)
	}
	for _, k := range []struct {
		by *backends.Keeper
		on bool
	}{{&s.kept.Memory, a.Memory}, {&s.kept.PIDs, a.PIDs}, {&s.kept.CPU, a.CPU}} {
		if k.on {
			*k.by = backends.KeptByCgroup
		}
	}
}

func why(err error) string {
	return strings.TrimPrefix(err.Error(), cgroup.ErrUnsupported.Error()+": ")
}

// release abandons a group in which the agent could not be started.
func (s *state) release(err error) {
	_ = s.group.Remove()
	s.group, s.kept, s.uncontained = nil, backends.Kept{}, "enter the control group: "+err.Error()
}

// ungroup removes the group of an agent that has ended with everything it
// started. Another program's process that was started in the group prevents the
// removal.
func (s *state) ungroup() {
	if s.group != nil {
		_ = s.group.Remove()
	}
}

func (s *state) groupPath() string {
	if s.group == nil {
		return ""
	}
	return s.group.Path()
}

// oom sets the reason of an end by the memory limit. The kernel's count alone
// does not suffice: an agent may outlive a compiler that it ran out of memory
// with.
func (s *state) oom(e *backends.Exit) {
	const shellKilled = 128 + 9 // exit status of a shell whose command was killed
	if s.group == nil || e.Signal != "SIGKILL" && e.Code != shellKilled {
		return
	}
	if n, err := s.group.OOMKills(); err == nil && n > 0 {
		e.Reason = backends.ReasonOOM
	}
}

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

// freezeWithin limits the time for pausing and resuming.
const freezeWithin = 10 * time.Second

// Freeze pauses or resumes a generation (see backends.Freezer).
func Freeze(ctx context.Context, l backends.Launch, pr backends.Proc, on bool) error {
	verb := "resume"
	if on {
		verb = "pause"
	}
	g, err := freezer(l, pr, verb)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, freezeWithin)
	defer cancel()
	err = g.Freeze(ctx, on)
	switch {
	case errors.Is(err, cgroup.ErrUnsupported):
		return noFreezer(verb, l, why(err))
	case errors.Is(err, context.DeadlineExceeded):
		return team.Errorf(team.CodeTimeout, "%s %s: one of its processes hangs in the kernel: %w", verb, l.Agent, err)
	case err != nil && !proc.Alive(pr.Agent):
		return team.Errorf(team.CodeNotFound, "%s %s: it has exited", verb, l.Agent)
	case err != nil:
		return fmt.Errorf("%s %s: %w", verb, l.Agent, err)
	}
	return nil
}

// Frozen reports whether a generation is paused. Without a control group it
// cannot be.
func Frozen(l backends.Launch, pr backends.Proc) (bool, error) {
	if pr.Cgroup == "" {
		return false, nil
	}
	g, err := freezer(l, pr, "look at")
	if err != nil {
		return false, err
	}
	on, err := g.Frozen()
	if err != nil {
		return false, fmt.Errorf("inspect %s: %w", l.Agent, err)
	}
	return on, nil
}

func freezer(l backends.Launch, pr backends.Proc, verb string) (*cgroup.Group, error) {
	if pr.Cgroup == "" {
		reason := pr.Uncontained
		if reason == "" {
			reason = "it was started without a control group"
		}
		return nil, noFreezer(verb, l, reason)
	}
	g, err := cgroup.Open(pr.Cgroup)
	if err != nil && !proc.Alive(pr.Agent) {
		return nil, team.Errorf(team.CodeNotFound, "%s %s: it has exited", verb, l.Agent)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, l.Agent, err)
	}
	return g, nil
}

func noFreezer(verb string, l backends.Launch, reason string) error {
	return team.Errorf(team.CodeUnavailable, "cannot %s %s: %s", verb, l.Agent, reason).WithReason("no_freezer").
		WithHint("teamctl stop " + l.Agent + " ends it instead; teamctl doctor says what is missing")
}

var _ backends.Freezer = (*Life)(nil)

// Freeze implements backends.Freezer.
func (f *Life) Freeze(ctx context.Context, on bool) error { return Freeze(ctx, f.launch, f.proc, on) }

// Frozen implements backends.Freezer.
func (f *Life) Frozen() (bool, error) { return Frozen(f.launch, f.proc) }

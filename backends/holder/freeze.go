package holder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

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
		return noFreezer(verb, l, cgroup.Why(err))
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
	return team.Errorf(team.CodeUnavailable, "cannot %s %s: %s", verb, l.Agent, reason).WithReason(team.ReasonNoFreezer).
		WithHint("teamctl stop " + l.Agent + " ends it instead; teamctl doctor says what is missing")
}

var _ backends.Freezer = (*Life)(nil)

// Freeze implements backends.Freezer.
func (f *Life) Freeze(ctx context.Context, on bool) error { return Freeze(ctx, f.launch, f.proc, on) }

// Frozen implements backends.Freezer.
func (f *Life) Frozen() (bool, error) { return Frozen(f.launch, f.proc) }

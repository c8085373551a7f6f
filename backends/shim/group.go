package shim

import (
	"os"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
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
		s.uncontained = cgroup.Why(err)
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

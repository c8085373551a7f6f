package backendtest

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends"
)

// Capabilities describe the agents of a backend. A part for a missing
// capability is not simply skipped: the suite then expects the error that the
// contract requires, and a part without such an error reports the capability
// that it needs.
type Capabilities struct {
	// Process: the agent is a process of its own below a shim. It has an exit
	// signal, can be killed from outside, and outlives its owner. Otherwise the
	// agent is a goroutine of its owner and runs FakeRun.
	Process bool
	// Terminal: the agent accepts typed text, interrupts and resizing, and has
	// a place of its own.
	Terminal bool
	// Few: at_once starts a quarter of its agents, for a short run.
	Few bool
}

// part is one part of the suite.
type part struct {
	name string
	run  func(t *testing.T, r *Rig)
	// without is what holds instead if needs is not met; nil if nothing does.
	without func(t *testing.T, r *Rig)
	needs   func(Capabilities) bool // nil: nothing
	missing string                  // what it needs, in words
}

func (p part) in(t *testing.T, r *Rig) {
	switch {
	case p.needs == nil || p.needs(r.Can):
		p.run(t, r)
	case p.without != nil:
		p.without(t, r)
	default:
		t.Skipf("declared: agents of this backend have no %s", p.missing)
	}
}

func process(c Capabilities) bool  { return c.Process }
func terminal(c Capabilities) bool { return c.Terminal }

// wasStopped reports whether an exit is the result of Stop for an agent that
// obeys.
func (r *Rig) wasStopped(e backends.Exit) bool {
	if r.Can.Process {
		return e.Known && e.Signal == "SIGTERM" && e.Code == -1
	}
	return e.Known && e.Signal == "" && strings.HasPrefix(e.Reason, "stopped")
}

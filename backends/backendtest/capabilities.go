package backendtest

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends"
)

// Capabilities says what the agents of a backend have. What is declared missing is
// not passed over: the suite then expects the refusal that the contract asks for,
// and a part that has nothing to expect says which capability it needs.
type Capabilities struct {
	// Process: the agent is a process of its own below a shim. It has an exit signal,
	// can be killed from outside, and outlives its owner. Without it the agent is a
	// goroutine of its owner and runs FakeRun.
	Process bool
	// Terminal: it can be typed to, interrupted and resized, and has a place of its own.
	Terminal bool
}

// part is one part of the suite.
type part struct {
	name string
	run  func(t *testing.T, r *Rig)
	// without is what holds instead where needs is not met; nil where nothing does.
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

// wasStopped reports whether an exit is what Stop makes of an agent that obeys.
func (r *Rig) wasStopped(e backends.Exit) bool {
	if r.Can.Process {
		return e.Known && e.Signal == "SIGTERM" && e.Code == -1
	}
	return e.Known && e.Signal == "" && strings.HasPrefix(e.Reason, "stopped")
}

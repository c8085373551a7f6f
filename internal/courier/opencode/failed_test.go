package opencode

import (
	"testing"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// An error that ends a turn is reported, with its text, before the session is reported to be at
// rest; the next supervisor reads it from the session. An aborted turn did not fail.
func TestServerFailedTurn(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	startOpenCode(t, r, addr, false)
	r.open(t)
	r.Wait(t, "the session", 0, up)
	r.Wait(t, "idle", 0, couriertest.Is(team.Idle))
	from := r.Mark()
	r.Deliver(t, false, "m1", "@@fail 400 bad thing")
	r.FailsFirst(t, from)
	r.Ch.Close()
	from = r.Mark()
	r.open(t)
	r.FailsFirst(t, from)

	from = r.Mark()
	r.Deliver(t, false, "m2", "@@shell sleep 600\n@@say never")
	r.Asked(t, "never")
	if err := r.Ch.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := r.Wait(t, "the end", from, func(o team.Observation) bool { return o.Interrupted || o.Failed != "" })
	if o.Failed != "" {
		t.Errorf("a turn that somebody has ended failed: %+v", o)
	}
}

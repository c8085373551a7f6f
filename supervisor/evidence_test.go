package supervisor

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// A message whose receipt never comes is asked about once its way has had its time, and not
// before, by the supervisor that has handed it over.
func TestInjectedIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, settles := range []bool{true, false} {
		c := &fakeCourier{settles: settles, evidence: 50 * time.Millisecond}
		var asked atomic.Int32
		c.deliver = func(_ context.Context, mail []team.Mail) (out []team.Outcome) {
			for _, m := range mail {
				o := team.Outcome{ID: m.ID, State: team.Injected}
				if m.Again {
					switch asked.Add(1) {
					case 1: // it is not seen yet
						o.State, o.Reason = team.Held, "an earlier handover may still wait for the turn"
					case 2: // the program lacked it, and has got it again
					default:
						o.State, o.Evidence = team.Accepted, "the session has it"
					}
				}
				out = append(out, o)
			}
			return out
		}
		r, _ := talking(t, c)
		id := r.post("lost")
		if !settles { // nothing can be asked: it stays as it is
			r.until("handed over", func() bool { return r.delivery(id).State == team.Injected })
			other := r.post("the next")
			r.until("handed over", func() bool { return r.delivery(other).State == team.Injected })
			if n := asked.Load(); n > 0 {
				t.Errorf("asked %d times", n)
			}
			continue
		}
		r.until("settled", func() bool { return r.delivery(id).State == team.Accepted })
		if n := asked.Load(); n != 3 {
			t.Errorf("asked %d times", n)
		}
	}
}

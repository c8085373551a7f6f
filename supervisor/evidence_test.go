package supervisor

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A message without a receipt is asked about after the time that its way may take, not before, by
// the supervisor that has handed it over.
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

// TestHeldAfterItWasHandedOver: a message that an agent returns because its turn was cancelled is
// handed over again.
func TestHeldAfterItWasHandedOver(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	var given atomic.Int32
	c.deliver = func(_ context.Context, mail []team.Mail) (out []team.Outcome) {
		for _, m := range mail {
			given.Add(1)
			out = append(out, team.Outcome{ID: m.ID, State: team.Injected})
		}
		return out
	}
	r, _ := talking(t, c)
	id := r.post("cancelled")
	r.until("handed over", func() bool { return r.delivery(id).State == team.Injected })
	d := r.delivery(id)
	if _, err := r.led.Mark(t.Context(), ledger.DeliveryMark{MessageID: id, Recipient: d.Recipient, State: team.Held, Reason: "the turn that had it was cancelled"}); err != nil {
		t.Fatal(err)
	}
	r.until("handed over again", func() bool { return given.Load() == 2 && r.delivery(id).State == team.Injected })
}

// TestUnknown: a message that was handed over and does not show is not reported as in flight, its
// evidence is kept, and a later receipt counts.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for _, settles := range []bool{true, false} {
		c := &fakeCourier{settles: settles, evidence: 20 * time.Millisecond, doubt: 50 * time.Millisecond}
		var shown atomic.Bool
		c.deliver = func(_ context.Context, mail []team.Mail) (out []team.Outcome) {
			for _, m := range mail {
				o := team.Outcome{ID: m.ID, State: team.Injected, Evidence: "handed over"}
				if m.Again && shown.Load() {
					o.State, o.Evidence = team.Accepted, "the session has it"
				}
				out = append(out, o)
			}
			return out
		}
		r, _ := talking(t, c)
		id := r.post("lost")
		r.until("it is in doubt", func() bool { return r.delivery(id).State == team.Unknown })
		if d := r.delivery(id); !strings.HasPrefix(d.Reason, "nothing shows it since ") || d.Evidence != "handed over" {
			t.Errorf("it is %+v", d)
		}
		waiting, err := r.led.Waiting(t.Context(), r.delivery(id).Session)
		if err != nil || len(waiting) != 1 {
			t.Errorf("%d wait, %v: a message in doubt has not arrived", len(waiting), err)
		}
		shown.Store(true)
		if !settles { // a hook
			if _, err := r.led.Mark(t.Context(), ledger.DeliveryMark{MessageID: id, Recipient: "a", State: team.Accepted, Evidence: "the session has it"}); err != nil {
				t.Fatal(err)
			}
		}
		r.until("it has arrived", func() bool { return r.delivery(id).State == team.Accepted })
	}
}

// A message in the program's own queue, or in a running turn, does not become unknown as soon as
// one that is nowhere.
func TestPendingIsNotUnknown(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{settles: true, evidence: 10 * time.Millisecond, doubt: time.Hour}
	var asked atomic.Int32
	var gone atomic.Bool
	c.deliver = func(_ context.Context, mail []team.Mail) (out []team.Outcome) {
		for _, m := range mail {
			o := team.Outcome{ID: m.ID, State: team.Injected}
			if m.Again {
				asked.Add(1)
				o.State, o.Pending = "", !gone.Load()
			}
			out = append(out, o)
		}
		return out
	}
	r, _ := talking(t, c)
	id := r.post("pending")
	r.until("asked about, long after one that is not pending is unknown", func() bool { return asked.Load() >= 5 })
	if d := r.delivery(id); d.State != team.Injected {
		t.Errorf("it is %+v", d)
	}
	gone.Store(true)
	r.until("unknown", func() bool { return r.delivery(id).State == team.Unknown })
}

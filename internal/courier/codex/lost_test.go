package codex

import (
	"testing"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// Codex drops a message that was steered into a turn if the turn is interrupted before it
// processes the message: the channel reads the thread at rest and sends missing messages, once.
func TestAppServerInterruptedWithMail(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	s := startCodex(t, r, false)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	for _, drop := range []bool{false, true} { // with its connection as well
		id, text := "m-kept", "a word of mine"
		if drop {
			id, text = "m-dropped", "another word"
		}
		from := r.Mark()
		r.Deliver(t, false, "busy "+id, "@@shell sleep 600\n@@say never")
		r.Wait(t, "the receipt", from, couriertest.Receipt("busy "+id))
		r.Wait(t, "working", from, couriertest.Is(team.Working))
		if out := r.Deliver(t, false, id, text); out[0].State != team.Injected {
			t.Fatalf("steered: %+v", out[0])
		}
		if drop {
			s.Drop()
			s.Engine.Interrupt() // by a person, unnoticed
		} else if err := r.Ch.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Wait(t, "the receipt", from, couriertest.Receipt(id))
		r.Asked(t, text)
		after := r.Mark()
		r.Deliver(t, false, "after "+id, "@@say after "+id)
		got := r.Wait(t, "the last receipt", after, couriertest.Receipt("after "+id))
		// The previous turn may come to rest only now.
		r.Wait(t, "idle", after, func(o team.Observation) bool { return o.Activity == team.Idle && o.At.After(got.At) })
		r.Asked(t, "@@say after "+id)
		if n := r.Model.Arrivals(text); n != 1 {
			t.Errorf("%q came %d times", text, n)
		}
	}
}

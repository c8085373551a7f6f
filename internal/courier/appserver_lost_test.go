package courier

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// What was steered into a turn that is interrupted before it comes to it is dropped by
// Codex: the thread is read when it is at rest, and given what it lacks, once.
func TestAppServerInterruptedWithMail(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	s := startCodex(t, r, false)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	for _, drop := range []bool{false, true} { // with its connection, too
		id, text := "m-kept", "a word of mine"
		if drop {
			id, text = "m-dropped", "another word"
		}
		from := r.mark()
		r.deliver(t, false, "busy "+id, "@@shell sleep 600\n@@say never")
		r.wait(t, "the receipt", from, receipt("busy "+id))
		r.wait(t, "working", from, is(team.Working))
		if out := r.deliver(t, false, id, text); out[0].State != team.Injected {
			t.Fatalf("steered: %+v", out[0])
		}
		if drop {
			s.Drop()
			s.Engine.Interrupt() // by a person, and nobody hears of it
		} else if err := r.ch.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.wait(t, "the receipt", from, receipt(id))
		r.asked(t, text)
		after := r.mark()
		r.deliver(t, false, "after "+id, "@@say after "+id)
		got := r.wait(t, "the last receipt", after, receipt("after "+id))
		// The turn before it may come to rest only now.
		r.wait(t, "idle", after, func(o team.Observation) bool { return o.Activity == team.Idle && o.At.After(got.At) })
		r.asked(t, "@@say after "+id)
		if n := r.model.Arrivals(text); n != 1 {
			t.Errorf("%q came %d times", text, n)
		}
	}
}

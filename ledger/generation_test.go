package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// A new generation does not get the shutdown requests of the previous one:
// unanswered ones are dropped, other mail stays, and a request still being
// posted is refused.
func TestShutdownRequestIsForOneGeneration(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	a := must[Member](t)(l.Member(ctx, "a"))
	begin := func(gen string) {
		must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: a.SessionKey, Generation: &gen}))
	}
	ask := NewMessage{From: "b", To: "a", Kind: team.KindShutdownRequest, ToGen: "one"}
	begin("one")
	asked := post(t, l, ask)
	seen := post(t, l, ask)
	must[bool](t)(l.Mark(ctx, DeliveryMark{MessageID: seen.ID, Recipient: "a", State: team.Injected}))
	obeyed := post(t, l, ask)
	must[bool](t)(l.Mark(ctx, DeliveryMark{MessageID: obeyed.ID, Recipient: "a", State: team.Accepted, Evidence: "it said so"}))
	mail := post(t, l, NewMessage{From: "b", To: "a"})
	begin("one") // same generation
	state := func(m Message) Delivery { return must[Delivery](t)(l.Delivery(ctx, m.ID, "a")) }
	if d := state(asked); d.State != team.Posted {
		t.Fatalf("%+v", d)
	}
	begin("two")
	for _, c := range []struct {
		what string
		m    Message
		want team.DeliveryState
	}{{"posted", asked, team.Dropped}, {"injected", seen, team.Dropped}, {"accepted", obeyed, team.Accepted}, {"mail", mail, team.Posted}} {
		if d := state(c.m); d.State != c.want || (d.State == team.Dropped) != (d.Reason != "") {
			t.Errorf("%s: %+v", c.what, d)
		}
	}
	ask.Text = "late"
	_, _, err := l.Post(ctx, ask)
	refused(t, err, team.CodeConflict, team.ReasonStaleGeneration)
}

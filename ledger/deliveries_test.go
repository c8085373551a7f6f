package ledger

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Open deliveries of a session are found without reading the delivered ones:
// every statement uses the index of open deliveries, and the counts read
// nothing else.
func TestOpenDeliveriesHaveAnIndex(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	for name, q := range map[string]string{
		"what waits": sqlWaiting, "what a leaver has not got": sqlDeliveryOpen,
		"its shutdown requests": sqlShutdownOpen, "how many wait": sqlWaitingCounts,
	} {
		p := plan(t, l, strings.ReplaceAll(q, "?", "'s-a'"))
		want := "USING COVERING INDEX idx_deliveries_open"
		if q == sqlWaiting { // it also returns the reason and the evidence
			want = "SEARCH d USING INDEX idx_deliveries_open (session=?)"
		}
		if !strings.Contains(p, want) || q == sqlWaiting && strings.Contains(p, "TEMP B-TREE") {
			t.Errorf("%s:\n%s", name, p)
		}
	}
	var ids []string
	for range 3 {
		m, _, err := l.Post(ctxFor(t), NewMessage{Kind: team.KindInfo, From: team.LeadName, To: "a", Text: "hello"})
		ok(t, err)
		ids = append(ids, m.ID)
	}
	for _, m := range []DeliveryMark{
		{MessageID: ids[0], State: team.Mailed}, {MessageID: ids[1], State: team.Held, Reason: "later"}, {MessageID: ids[2], State: team.Accepted, Evidence: "seen"},
	} {
		m.Recipient = "a"
		must[bool](t)(l.Mark(ctxFor(t), m))
	}
	var got []string
	for _, o := range must[[]Outgoing](t)(l.Waiting(ctxFor(t), "s-a")) {
		got = append(got, o.Message.ID)
	}
	if strings.Join(got, " ") != strings.Join(ids[:2], " ") || must[map[string]int](t)(l.WaitingCounts(ctxFor(t)))["s-a"] != 2 {
		t.Errorf("%v waits of %v", got, ids)
	}
}

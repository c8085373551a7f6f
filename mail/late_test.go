package mail

import (
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A poster that was stopped for long between its post and its mailing mails all the
// same, before it returns: no supervisor need be there. What another has mailed in
// its place it does not mail again.
func TestLatePosterMailsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, _, box := r.mailed()
	for _, swept := range []bool{false, true} {
		msg, ds, err := r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		if swept {
			if err := m.takeOver(t.Context(), ledger.Outgoing{Message: msg, Delivery: ds[0]}); err != nil {
				t.Fatal(err)
			}
		}
		d := ds[0]
		if err := m.mail(t.Context(), &d); err != nil {
			t.Fatal(err)
		}
		if d.State != team.Mailed {
			t.Errorf("it is %s (%s), want mailed", d.State, d.Reason)
		}
		entries, err := box.Entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range entries {
			if e.ID == msg.ID {
				n++
			}
		}
		if n != 1 {
			t.Errorf("it stands in the mailbox %d times, want once (mailed by another: %v)", n, swept)
		}
	}
}

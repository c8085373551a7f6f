package supervisor

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// After a power failure the mailbox is valid, but lacks the last messages, which the ledger has as
// mailed. The first supervisor of the next boot restores them.
func TestFault34MailboxOlderThanTheLedger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.joins("a")
	post := func(text string) ledger.Message {
		t.Helper()
		msg, ds, err := r.mailer().Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text})
		if err != nil || ds[0].State != team.Mailed {
			t.Fatalf("%+v, %v", ds, err)
		}
		return msg
	}
	post("1")
	box := r.box("a")
	first, err := os.ReadFile(box.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.mailer().AfterBoot(t.Context(), "boot 1"); err != nil {
		t.Fatal(err)
	}
	if err := r.mailer().Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	post("2")
	if _, err := r.led.Mark(t.Context(), ledger.DeliveryMark{MessageID: post("3").ID, Recipient: "a", State: team.Read, Evidence: "it said so"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(box.Path(), first, 0o600); err != nil {
		t.Fatal(err)
	}
	const boot = "boot 2"
	r.clock.SinceBoot = func() (string, time.Duration, error) { return boot, time.Minute, nil }
	r.supervisor()
	eventually(t, func() bool {
		now, err := os.ReadFile(r.layout.MailBoot())
		_, lacks := box.Lacks()
		return err == nil && string(now) == boot && !lacks
	})
	if texts := r.unread("a"); !slices.Equal(texts, []string{"1", "2"}) { // what was read stays read
		t.Errorf("the mailbox holds %v", texts)
	}
}

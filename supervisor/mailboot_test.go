package supervisor

import (
	"os"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The machine has lost its power: the mailbox is sound, but without what was appended
// last, which the ledger has as mailed. The first supervisor of the next boot puts that
// back.
func TestFault34MailboxOlderThanTheLedger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	boot := "boot 1"
	r.clock.SinceBoot = func() (string, time.Duration, error) { return boot, time.Minute, nil }
	m, to, box := r.mailed("1")
	first, err := os.ReadFile(box.Path())
	if err != nil {
		t.Fatal(err)
	}
	post := func(text string) ledger.Message {
		t.Helper()
		msg, ds, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text})
		if err != nil || ds[0].State != team.Mailed {
			t.Fatalf("%+v, %v", ds, err)
		}
		return msg
	}
	looked := func() {
		t.Helper()
		if err := m.AfterBoot(t.Context(), boot); err != nil {
			t.Fatal(err)
		}
		if err := m.Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	looked()
	post("2")
	if _, err := r.led.Mark(t.Context(), ledger.DeliveryMark{MessageID: post("3").ID, Recipient: "a", State: team.Read, Evidence: "it said so"}); err != nil {
		t.Fatal(err)
	}
	lose := func() {
		t.Helper()
		if err := os.WriteFile(box.Path(), first, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	boot = "boot 2"
	r.supervisor()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		now, err := os.ReadFile(r.layout.MailBoot())
		if err == nil && string(now) == boot && !m.lacking(box) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the boot on record is %q, %v", now, err)
		}
	}
	r.holds(box, "1", "2") // and what was read stays read
	// Killed between the mark and the restoring: the next of that boot goes on.
	lose()
	boot = "boot 3"
	if err := m.AfterBoot(t.Context(), boot); err != nil {
		t.Fatal(err)
	}
	looked()
	r.holds(box, "1", "2")
	if out, err := r.led.Waiting(t.Context(), to.SessionKey); err != nil || len(out) != 2 {
		t.Errorf("waiting: %d, %v", len(out), err)
	}
}

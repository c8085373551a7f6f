package mail

import (
	"os"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A process that was killed between marking the mailboxes of a new boot and restoring them
// leaves the rest to the next one of that boot. What was read stays read.
func TestBootIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, to, box := r.mailed("1")
	first, err := os.ReadFile(box.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"2", "3"} {
		msg, _, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if text == "3" {
			_, err = r.led.Mark(t.Context(), ledger.DeliveryMark{MessageID: msg.ID, Recipient: "a", State: team.Read, Evidence: "it said so"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(box.Path(), first, 0o600); err != nil { // as after a power failure
		t.Fatal(err)
	}
	for range 2 {
		if err := m.AfterBoot(t.Context(), "boot 2"); err != nil {
			t.Fatal(err)
		}
		if !m.lacking(box) {
			t.Error("the mailbox is not marked")
		}
	}
	if err := m.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.holds(box, "1", "2")
	if out, err := r.led.Waiting(t.Context(), to.SessionKey); err != nil || len(out) != 2 {
		t.Errorf("waiting: %d, %v", len(out), err)
	}
	// The same boot marks nothing again.
	if err := m.AfterBoot(t.Context(), "boot 2"); err != nil || m.lacking(box) {
		t.Errorf("marked again in the same boot: %v, %v", m.lacking(box), err)
	}
}

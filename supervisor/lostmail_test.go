package supervisor

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

func TestUnmailedMessageIsMailedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.policy.Repair = 10 * time.Millisecond
	// The poster dies between posting and mailing, before and after its append.
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	s.Close()
	var ids []string
	for i := range 2 {
		msg, _, err := r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, msg.ID)
		if i == 1 {
			box, err := inbox.Open(r.layout.Inboxes(), r.layout.Locks(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if err := box.Append(t.Context(), mail.EntryOf(ledger.Unmailed{Outgoing: ledger.Outgoing{Message: msg}})); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.supervisor()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	changes, stop, err := r.led.Changes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for {
		mailed := 0
		for _, id := range ids {
			if d, err := r.led.Delivery(ctx, id, "a"); err == nil && d.State == team.Mailed {
				mailed++
			}
		}
		if mailed == len(ids) {
			break
		}
		select {
		case <-changes:
		case <-ctx.Done():
			t.Fatal("not mailed")
		}
	}
	box, err := inbox.Open(r.layout.Inboxes(), r.layout.Locks(), "a")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := box.Entries(ctx)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v: each message stands there once", len(entries), err)
	}
}

func TestDamagedMailboxIsRebuiltFromTheLedger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	post := func(text string) {
		t.Helper()
		if _, _, err := r.mailer().Post(t.Context(), ledger.NewMessage{
			Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text,
		}); err != nil {
			t.Fatal(err)
		}
	}
	post("one")
	post("two")
	box, err := inbox.Open(r.layout.Inboxes(), r.layout.Locks(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(box.Path(), []byte("[{\"from\": garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	post("three")
	// The process that found the damage has restored the mailbox; the supervisor mails the rest.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	w, err := inbox.Watch(ctx, r.layout.Inboxes())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	rings := w.Changes("a")
	for {
		entries, err := box.Entries(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, e := range entries {
			texts = append(texts, e.Text)
		}
		if slices.Equal(texts, []string{"one", "two", "three"}) {
			return
		}
		select {
		case <-rings:
		case <-ctx.Done():
			t.Fatalf("mailbox holds %v", texts)
		}
	}
}

// A mailbox that was deleted or emptied is restored with the next message or the next supervisor;
// what its owner took is not restored.
func TestFault29MailboxDeletedOrEmptied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartNever)
	post := func(text string) ledger.Message {
		t.Helper()
		msg, _, err := r.mailer().Post(t.Context(), ledger.NewMessage{
			Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text,
		})
		if err != nil {
			t.Fatal(err)
		}
		return msg
	}
	box, err := inbox.Open(r.layout.Inboxes(), r.layout.Locks(), "a")
	if err != nil {
		t.Fatal(err)
	}
	has := func(want ...string) {
		t.Helper()
		texts := r.unread("a")
		if !slices.Equal(texts, want) {
			t.Errorf("mailbox holds %q, want %q", texts, want)
		}
	}
	taken := post("taken")
	if _, err := r.led.Mark(t.Context(), ledger.DeliveryMark{MessageID: taken.ID, Recipient: "a", State: team.Read, Evidence: "test"}); err != nil {
		t.Fatal(err)
	}
	post("one")
	if err := os.Remove(box.Path()); err != nil {
		t.Fatal(err)
	}
	post("two")
	has("one", "two")
	if err := os.Truncate(box.Path(), 0); err != nil {
		t.Fatal(err)
	}
	post("three")
	has("one", "two", "three")
	ds, err := r.led.Mailbox(t.Context(), m.SessionKey, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range ds[1:] {
		if o.Delivery.State != team.Mailed {
			t.Errorf("%s is %s", o.Message.Text, o.Delivery.State)
		}
	}
	if err := os.Remove(box.Path()); err != nil {
		t.Fatal(err)
	}
	if err := r.mailer().Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	has("one", "two", "three")
}

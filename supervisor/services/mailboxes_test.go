package services

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// A message that its poster has not mailed is mailed after a while, a lost mailbox is restored at
// the start, and the lead's mailbox is followed.
func TestMailboxes(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t, "ann")
	post := func(text string) {
		t.Helper()
		if _, _, err := tm.Ledger.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	box, err := tm.Mailer().Box("ann")
	if err != nil {
		t.Fatal(err)
	}
	unread := func() (n int) {
		list, err := box.Unread(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if _, _, err := tm.Mailer().Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "one"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(box.Path()); err != nil {
		t.Fatal(err)
	}
	looks := make(chan struct{}, 10)
	b := looptest.NewBus(t)
	m := NewMailboxes(tm, time.Second, func(context.Context) error {
		looks <- struct{}{}
		return nil
	}, func() (string, error) { return "boot", nil })
	b.StartService(m)
	<-looks
	b.Until("the lost mailbox is restored", func() bool { return unread() == 1 })
	b.Until("pruned", func() bool { return !m.pruning })
	post("two")
	m.Event(ledger.Event{What: "message.posted"})
	if b.Periods["repair"] != time.Second {
		t.Errorf("armed %v", b.Periods)
	}
	b.Until("what was only posted is mailed", func() bool { return unread() == 2 })
}

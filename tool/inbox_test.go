package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Mail that a reader has taken and not confirmed comes again with the same ids, including entries
// that another program wrote without an id; confirmed mail does not.
func TestUnconfirmedMailComesAgain(t *testing.T) {
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	r.say(Person(), "a", "one")
	r.say(Person(), "a", "two")
	box, err := r.mailer(a).Box("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Append(ctx, inbox.Entry{From: "elsewhere", Text: "three"}); err != nil {
		t.Fatal(err)
	}
	take := func() (texts string, ids []string) {
		t.Helper()
		in, err := r.InboxTake(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range in.Entries {
			texts += e.Text + " "
		}
		return texts, in.IDs()
	}
	texts, ids := take()
	again, same := take()
	if texts != "one two three " || again != texts || !slices.Equal(ids, same) || slices.Contains(ids, "") {
		t.Fatalf("%q %q, then %q %q", texts, ids, again, same)
	}
	err = r.InboxAck(ctx, a, "test", ids[0], "no-such-id")
	if !team.IsCode(err, team.CodeNotFound) || !strings.Contains(err.Error(), "no-such-id") {
		t.Errorf("an unknown id: %v", err)
	}
	if texts, _ := take(); texts != "one two three " {
		t.Errorf("a refused confirmation has marked: %q is left", texts)
	}
	if err := r.InboxAck(ctx, a, "test", ids[0], ids[2]); err != nil {
		t.Fatal(err)
	}
	if texts, _ := take(); texts != "two " {
		t.Errorf("after two were confirmed: %q", texts)
	}
	if d, err := r.Ledger.Delivery(ctx, ids[0], "a"); err != nil || d.State != team.Read || d.Evidence != "test" {
		t.Errorf("%+v, %v", d, err)
	}
	failed := errors.New("no space left")
	if err := r.InboxConsume(ctx, a, func(InboxOut) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if texts, _ := take(); texts != "two " {
		t.Errorf("what could not be passed on is gone: %q", texts)
	}
	if in, err := r.consume(ctx, a); err != nil || len(in.Entries) != 1 {
		t.Errorf("%+v, %v", in, err)
	}
	if texts, _ := take(); texts != "" {
		t.Errorf("consumed, and there again: %q", texts)
	}
}

// Consumers of one mailbox take turns: no message goes to two of them.
func TestConsumersTakeTurns(t *testing.T) {
	r := newTalkRig(t)
	a := r.as("a", team.RoleExecutor)
	r.say(Person(), "a", "for one only")
	first := make(chan InboxOut)
	goOn := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- r.InboxConsume(t.Context(), a, func(in InboxOut) error {
			first <- in
			<-goOn
			return nil
		})
	}()
	if in := <-first; len(in.Entries) != 1 {
		t.Errorf("%+v", in)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.consume(ctx, a); !errors.Is(err, context.Canceled) {
		t.Errorf("while the first one has not finished: %v", err)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if in, err := r.consume(t.Context(), a); err != nil || len(in.Entries) != 0 {
		t.Errorf("the second one got %+v, %v", in, err)
	}
}

// Many entries are marked in one transaction: their times are equal.
func TestManyEntriesAreMarkedAtOnce(t *testing.T) {
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	const many = 300
	for i := range many {
		if _, err := r.Post(ctx, ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if in, err := r.consume(ctx, a); err != nil || len(in.Entries) != many {
		t.Fatalf("%d, %v", len(in.Entries), err)
	}
	events, err := r.Ledger.Events(ctx, 0, 0, ledger.EventFilter{What: "message.read"})
	if err != nil || len(events) != many {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		if e.At != events[0].At || e.Seq != events[0].Seq+int64(i) {
			t.Fatalf("event %d is of another transaction: %+v", i, e)
		}
	}
}

// Mail that the supervisor or a hook would deliver, too, is recorded as handed over when the agent
// takes it by itself: they look for it in the conversation first.
func TestTakenMailIsNotBroughtToo(t *testing.T) {
	r := newTalkRig(t)
	ctx := t.Context()
	for agent, want := range map[string]team.DeliveryState{"claude": team.Injected, "worker": team.Mailed, team.AgentExternal: team.Mailed} {
		c, _ := r.memberOf(agent, "of-"+agent, team.RoleExecutor)
		id := r.say(Person(), c.Name, "hello").MessageID
		in, err := r.InboxTake(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.InboxGiven(ctx, c, in.IDs()); err != nil {
			t.Fatal(err)
		}
		if d, err := r.Ledger.Delivery(ctx, id, c.Name); err != nil || d.State != want {
			t.Errorf("%s: %+v, %v", agent, d, err)
		}
		if again, err := r.InboxTake(ctx, c); err != nil || len(again.Entries) != 1 {
			t.Errorf("%s: not confirmed, and gone: %+v, %v", agent, again, err)
		}
	}
}

// Mail that a killed poster has left in the ledger is added to the mailbox by its reader, and
// reported by the doctor until then. If the mailbox cannot be written, the reader gets the mail
// nevertheless, and can confirm it.
func TestReaderCollectsItsMail(t *testing.T) {
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	leave := func(text string) string {
		t.Helper()
		m, _, err := r.Ledger.Post(ctx, ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	id := leave("left behind")
	if late, err := r.lateMail(ctx, time.Now().Add(time.Minute)); err != nil || late != "a (1)" {
		t.Errorf("%q, %v", late, err)
	}
	if late, err := r.lateMail(ctx, time.Now().Add(-time.Minute)); err != nil || late != "" {
		t.Errorf("too early: %q, %v", late, err)
	}
	in, err := r.InboxTake(ctx, a)
	if err != nil || len(in.Entries) != 1 || in.Entries[0].ID != id {
		t.Fatalf("%+v, %v", in, err)
	}
	if d, err := r.Ledger.Delivery(ctx, id, "a"); err != nil || d.State != team.Mailed {
		t.Errorf("%+v, %v", d, err)
	}
	if late, err := r.lateMail(ctx, time.Now().Add(time.Minute)); err != nil || late != "" {
		t.Errorf("%q, %v", late, err)
	}
}

package op

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// readRig is a member with mail and what its calls of InboxRead return.
type readRig struct {
	home
	s *Session
}

func newReadRig(t *testing.T) readRig {
	h := newHome(t)
	return readRig{h, h.as("a", team.RoleExecutor, "")}
}

func (r readRig) post(text string) {
	r.Helper()
	r.team(func(t *tool.Team) error {
		_, err := t.Post(r.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text})
		return err
	})
}

// read returns the texts of one call, and the first id.
func (r readRig) read(ctx context.Context, s *Session, input string) (texts, id string) {
	r.Helper()
	out, err := s.Call(ctx, "InboxRead", json.RawMessage(input))
	if err != nil {
		r.Fatal(err)
	}
	var list []string
	for _, e := range out.(tool.InboxOut).Entries {
		list = append(list, e.Text)
	}
	if ids := out.(tool.InboxOut).IDs(); len(ids) > 0 {
		id = ids[0]
	}
	return strings.Join(list, " "), id
}

func (r readRig) want(what, got, want string) {
	r.Helper()
	if got != want {
		r.Errorf("%s: %q, want %q", what, got, want)
	}
}

// What a call has returned is marked by the next call of the same client, and by no other.
func TestInboxReadIsConfirmedByTheNextCall(t *testing.T) {
	r := newReadRig(t)
	ctx := t.Context()
	r.post("one")
	got, id := r.read(ctx, r.s, "")
	r.want("the first call", got, "one")

	// The client was killed before it had the answer: its successor gets the same.
	other := NewSession(r.env, "demo", r.s.Who, r.s.Outsider)
	got, same := r.read(ctx, other, "")
	r.want("another client", got, "one")
	r.want("its id", same, id)
	got, same = r.read(WithClient(ctx, "third"), other, "")
	r.want("a third client of that session", got, "one")
	r.want("its id", same, id)

	r.post("two")
	got, _ = r.read(ctx, other, "")
	r.want("the next call", got, "two")
	got, _ = r.read(ctx, other, `{"peek": true}`)
	r.want("a peek", got, "")
	r.post("three")
	got, _ = r.read(ctx, other, `{"peek": true}`)
	r.want("a peek", got, "three")
	got, _ = r.read(ctx, other, "")
	r.want("after a peek", got, "three")
	if _, err := other.Call(ctx, "Wait", json.RawMessage(`{"message": true, "timeout_seconds": 1}`)); !team.IsCode(err, team.CodeTimeout) {
		t.Errorf("it waits for mail and is told of what it has: %v", err)
	}
}

// A client that names what it confirms confirms nothing else.
func TestInboxReadByExplicitAck(t *testing.T) {
	r := newReadRig(t)
	ctx := t.Context()
	r.post("one")
	r.post("two")
	_, id := r.read(ctx, r.s, "")
	got, _ := r.read(ctx, r.s, `{"ack": []}`)
	r.want("nothing confirmed", got, "one two")
	got, _ = r.read(ctx, r.s, `{"ack": ["`+id+`"]}`)
	r.want("the first one confirmed", got, "two")
	if _, err := r.s.Call(ctx, "InboxRead", json.RawMessage(`{"ack": ["nonsense"]}`)); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("%v", err)
	}
	got, _ = r.read(ctx, r.s, `{"ack": []}`)
	r.want("after a refusal", got, "two")
	if err := r.s.Received(ctx); err != nil {
		t.Fatal(err)
	}
	got, _ = r.read(ctx, r.s, "")
	r.want("all confirmed", got, "")
}

// A call that its client has cancelled returns nothing to it.
func TestCancelledInboxReadConfirmsNothing(t *testing.T) {
	r := newReadRig(t)
	r.post("one")
	r.team(func(tm *tool.Team) error {
		c, err := r.s.Who(t.Context(), tm)
		if err != nil {
			return err
		}
		in, err := tm.InboxTake(t.Context(), c)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.s.gave(ctx, tm, c, in.IDs())
		return nil
	})
	got, _ := r.read(t.Context(), r.s, "")
	r.want("the next call", got, "one")
}

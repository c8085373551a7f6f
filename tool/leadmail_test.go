package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A reader of the lead's mailbox that is called after every change queues each request once, and
// finds the answer that the lead writes into the requester's mailbox itself.
func TestAskedTakerTakesWhatIsNew(t *testing.T) {
	r := newTalkRig(t)
	ctx := t.Context()
	r.as("a", team.RoleExecutor)
	box := func(name string) *inbox.Box {
		t.Helper()
		b, err := r.mailer(Person()).Box(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	take := r.AskedTaker()
	pending := func(want int) {
		t.Helper()
		if err := take(ctx); err != nil {
			t.Fatal(err)
		}
		list, err := r.Approvals(ctx, false)
		if err != nil || len(list) != want {
			t.Fatalf("%d wait, %v; want %d", len(list), err, want)
		}
	}
	pending(0)
	r.asks("a", "one")
	pending(1)
	r.asks("a", "two")
	pending(2)
	answer := inbox.Entry{From: team.LeadName, Text: `{"type":"permission_response","request_id":"one","approve":true}`}
	if err := box("a").Append(ctx, answer); err != nil {
		t.Fatal(err)
	}
	pending(1)
}

// asks appends to the lead's mailbox a request as other programs write it.
func (r talkRig) asks(from, id string) {
	r.Helper()
	r.tells(inbox.Entry{From: from, Text: fmt.Sprintf(`{"type":"permission_request","request_id":%q,"agent_id":%q,"tool_name":"Bash","tool_use_id":"u","description":"d","input":{},"permission_suggestions":[]}`, id, from)})
}

// tells appends an entry to the lead's mailbox.
func (r talkRig) tells(e inbox.Entry) *inbox.Box {
	r.Helper()
	b, err := r.mailer(Person()).Box(team.LeadName)
	if err == nil {
		err = b.Append(r.Context(), e)
	}
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// waiting is the number of requests that wait for an answer.
func (r talkRig) waiting(want int) {
	r.Helper()
	list, err := r.Approvals(r.Context(), false)
	if err != nil || len(list) != want {
		r.Fatalf("%d wait, %v; want %d", len(list), err, want)
	}
}

// Listing the approvals reads the lead's mail since the last listing.
func TestApprovalsReadWhatIsNew(t *testing.T) {
	r := newTalkRig(t)
	r.as("a", team.RoleExecutor)
	r.asks("a", "one")
	var box *inbox.Box
	for i := range 300 {
		box = r.tells(inbox.Entry{From: "a", Text: fmt.Sprintf("hello %d", i)})
	}
	r.waiting(1)
	// Damage in what was read goes unnoticed: it is not read again.
	damage := func() {
		t.Helper()
		f, err := os.OpenFile(box.Path(), os.O_RDWR, 0)
		if err == nil {
			_, err = f.WriteAt([]byte("}}}}"), 40)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	damage()
	r.asks("a", "two")
	r.waiting(2)
	r.waiting(2)
	if bad, err := filepath.Glob(box.Path() + ".corrupt-*"); err != nil || len(bad) != 0 {
		t.Fatalf("the mailbox was read from its beginning: %v, %v", bad, err)
	}
	// Where the note is of another ledger, or of a later moment than this one has seen, all
	// of it is read again: what was taken up then may be missing here.
	type note struct {
		Ledger string         `json:"ledger"`
		Event  int64          `json:"event"`
		Box    inbox.TailMark `json:"mailbox"`
	}
	for what, change := range map[string]func(*note){
		"another ledger":  func(m *note) { m.Ledger = "1:1" },
		"a later ledger":  func(m *note) { m.Event += 1000 },
		"another mailbox": func(m *note) { m.Box.Ino++ },
	} {
		var m note
		data, err := os.ReadFile(r.Layout.LeadAsked())
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		change(&m)
		if data, err = json.Marshal(m); err == nil {
			err = os.WriteFile(r.Layout.LeadAsked(), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		damage()
		r.waiting(2)
		bad, err := filepath.Glob(box.Path() + ".corrupt-*")
		if err != nil || len(bad) == 0 {
			t.Errorf("%s: the mailbox was not read again: %v", what, err)
		}
		for _, b := range bad {
			if err := os.Remove(b); err != nil {
				t.Fatal(err)
			}
		}
		r.asks("a", "two") // the repair may have lost it
		r.waiting(2)
	}
}

// A request that was refused is tried again by the next reader: the reason may be gone.
func TestRefusedRequestsAreTriedAgain(t *testing.T) {
	r := newTalkRig(t)
	r.asks("late", "one")
	r.tells(inbox.Entry{From: "late", Text: "hello"})
	r.waiting(0)
	r.waiting(0)
	r.as("late", team.RoleExecutor)
	r.waiting(1)
	take := r.AskedTaker()
	r.asks("later", "two")
	if err := take(t.Context()); team.ReasonOf(err) != "forged" {
		t.Fatal(err)
	}
	r.as("later", team.RoleExecutor)
	if err := take(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := r.Ledger.Approvals(t.Context(), ledger.ApprovalFilter{State: ledger.ApprovalPending}); err != nil || len(list) != 2 {
		t.Fatalf("%d wait, %v", len(list), err)
	}
}

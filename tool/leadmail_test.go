package tool

import (
	"fmt"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/team"
)

// A taker that is called after every change takes up each request once, and finds the
// answer that the lead writes into the asker's mailbox itself.
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
	ask := func(id string) {
		t.Helper()
		e := inbox.Entry{From: "a", Text: fmt.Sprintf(`{"type":"permission_request","request_id":%q,"agent_id":"a","tool_name":"Bash","tool_use_id":"u","description":"d","input":{},"permission_suggestions":[]}`, id)}
		if err := box(team.LeadName).Append(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	pending(0)
	ask("one")
	pending(1)
	ask("two")
	pending(2)
	answer := inbox.Entry{From: team.LeadName, Text: `{"type":"permission_response","request_id":"one","approve":true}`}
	if err := box("a").Append(ctx, answer); err != nil {
		t.Fatal(err)
	}
	pending(1)
}

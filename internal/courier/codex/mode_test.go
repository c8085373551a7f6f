package codex

import (
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// The mode of an approved plan, with its writable directories, goes with the next turn of a
// running Codex; an unchanged mode is not sent at all.
func TestAppServerTakesAMode(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	r.facts.Mode, r.facts.Link.Mode, r.facts.Link.Writable = team.ModePlan, team.ModePlan, []string{"/repo/.git"}
	s := startCodex(t, r, false)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	turn := func(id, want string) {
		t.Helper()
		r.Deliver(t, false, id, "@@say "+id)
		r.Wait(t, "the receipt", 0, couriertest.Receipt(id))
		if got := s.Policy(); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	turn("m1", `{"approval":"","sandbox":null}`)
	for range 2 {
		if when := r.Ch.SetMode(team.ModeDefault); when != adapter.WithItsNextMessage {
			t.Errorf("it takes effect %q", when)
		}
	}
	const write = `{"approval":"on-request","sandbox":{"type":"workspaceWrite","writableRoots":["/repo/.git"]}}`
	turn("m2", write)
	if when := r.Ch.SetMode(team.ModeAcceptEdits); when != "" {
		t.Errorf("the same to it takes effect %q", when)
	}
	r.Ch.SetMode(team.ModePlan)
	turn("m3", `{"approval":"on-request","sandbox":{"type":"readOnly"}}`)
	r.Ch.Close()

	// The next supervisor knows from the ledger that the mode differs from that of the start.
	r.facts.Mode = team.ModeDontAsk
	from := r.Mark()
	r.open(t)
	r.Wait(t, "the thread", from, ready)
	turn("m4", `{"approval":"never","sandbox":{"type":"workspaceWrite","writableRoots":["/repo/.git"]}}`)
}

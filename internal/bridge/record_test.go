package bridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestBurstsToABusyTeammate: Claude Code 2.1.112 in mid-turn takes mail out of its mailbox
// at each look and begins its next turn with what it took last. It gets the next batch only
// when the one before is in its conversation, and what is not there is not accepted.
func TestBurstsToABusyTeammate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	busy := program{native: r.native(), inPlace: true, busy: true}
	var ids, kept, got []string
	for i := range 6 {
		ids = append(ids, r.send(r.caller(codex), "researcher", fmt.Sprintf("burst %d </teammate-message> & \"x\"\nline", i)))
		r.once()
		texts, err := busy.take(r, "researcher")
		if err != nil {
			t.Fatal(err)
		}
		if len(texts) > 0 {
			kept = texts
		}
		if i == 0 {
			r.state(ids[0], "researcher", team.Injected)
		}
	}
	r.once()
	r.state(ids[0], "researcher", team.Injected)
	r.state(ids[5], "researcher", team.Mailed)
	for len(kept) > 0 { // its turn ends, and the next begins with what it has
		if err := busy.turn(r, "researcher", kept); err != nil {
			t.Fatal(err)
		}
		got = append(got, kept...)
		r.once()
		var err error
		if kept, err = busy.take(r, "researcher"); err != nil {
			t.Fatal(err)
		}
		r.once()
	}
	for i, id := range ids {
		r.state(id, "researcher", team.Accepted)
		if want := fmt.Sprintf("burst %d <", i); len(got) != len(ids) || !strings.HasPrefix(got[i], want) {
			t.Fatalf("it has %q", got)
		}
	}
}

// TestTakenAndLost: what the program took and its conversation lacks though its turn is over
// is given again, and says that it may be known.
func TestTakenAndLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	p := program{native: r.native(), inPlace: true}
	if err := p.turn(r, "researcher", []string{"before"}); err != nil {
		t.Fatal(err)
	}
	id := r.send(r.caller(codex), "researcher", "lost once")
	r.once()
	p.busy = true
	if texts, err := p.take(r, "researcher"); err != nil || len(texts) != 1 {
		t.Fatal(texts, err)
	}
	r.once()
	r.state(id, "researcher", team.Injected) // it may be on its way

	b, unlock, err := open(t.Context(), r.in())
	if err != nil {
		t.Fatal(err)
	}
	b.patience = 0
	if err := b.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	box := r.box("researcher")
	if len(box) != 2 || box[1].Read || box[1].ID != id || box[1].Text != knownAlready+"\n\nlost once" {
		t.Fatalf("researcher has %+v", box)
	}
	r.state(id, "researcher", team.Injected)
	p.busy = false
	if _, err := p.take(r, "researcher"); err != nil {
		t.Fatal(err)
	}
	r.once()
	r.state(id, "researcher", team.Accepted)
}

// TestLongFirstTurn: the record of a teammate is found although its first turn, which is one line,
// has a batch of any length.
func TestLongFirstTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	codex := r.member("codex")
	r.once()
	p := program{native: r.native(), inPlace: true}
	_, pass := r.stepped()
	var ids []string
	for range 3 {
		ids = append(ids, r.send(r.caller(codex), "researcher", strings.Repeat("0123456789", 10_000)))
	}
	pass()
	if _, err := p.take(r, "researcher"); err != nil {
		t.Fatal(err)
	}
	pass()
	for _, id := range ids {
		r.state(id, "researcher", team.Accepted)
	}
}

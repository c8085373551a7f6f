package bridge

import (
	"fmt"
	"testing"

	"github.com/teamctl/teamctl/ledger"
)

// TestRows checks that records are found by kind and name, the first one where a name is that of
// several, and those that a pass adds as well.
func TestRows(t *testing.T) {
	t.Parallel()
	row := func(kind ledger.MirrorKind, there, here string) ledger.Mirrored {
		return ledger.Mirrored{Bridge: "b", Kind: kind, There: there, Here: here}
	}
	all := []ledger.Mirrored{row(ledger.MirrorMember, "7", "s7"), row(ledger.MirrorStop, "r1", "s7"), row(ledger.MirrorStop, "r2", "s7"), row(ledger.MirrorTask, "7", "70")}
	p := &pass{rows: newRows(all)}
	p.rows.add(row(ledger.MirrorTask, "8", "80"))
	for _, c := range []struct {
		kind        ledger.MirrorKind
		there, here string
	}{{ledger.MirrorMember, "7", "s7"}, {ledger.MirrorStop, "r1", "s7"}, {ledger.MirrorTask, "7", "70"}, {ledger.MirrorTask, "8", "80"}} {
		byThere, ok := p.there(c.kind, c.there)
		byHere, ok2 := p.here(c.kind, c.here)
		if want := row(c.kind, c.there, c.here); !ok || !ok2 || fmt.Sprint(byThere) != fmt.Sprint(want) || fmt.Sprint(byHere) != fmt.Sprint(want) {
			t.Errorf("%v is found as %v and %v", want, byThere, byHere)
		}
	}
	if _, ok := p.there(ledger.MirrorTask, "r1"); ok {
		t.Error("a record of another kind was found")
	}
	if got := p.of(ledger.MirrorStop); len(got) != 2 || got[1].There != "r2" {
		t.Errorf("%v", got)
	}
}

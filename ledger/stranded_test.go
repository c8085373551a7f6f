package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Stranded tasks are an event once for each time that there are some.
func TestSetStranded(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	ctx := ctxFor(t)
	set := func(first string, begun bool) {
		t.Helper()
		if got := must[bool](t)(l.SetStranded(ctx, first, raw(`{"why":"x"}`))); got != begun {
			t.Errorf("%q begins: %v", first, got)
		}
		if got := must[bool](t)(l.Stranded(ctx)); got != (first != "") {
			t.Errorf("after %q: %v", first, got)
		}
	}
	set("", false)
	set("5", true)
	set("7", false)
	set("", false)
	set("8", true)
	list := must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{What: team.EventTaskStranded}))
	if len(list) != 2 || list[0].ID != "5" || list[1].ID != "8" || string(list[1].Data) != `{"why":"x"}` {
		t.Errorf("%+v", list)
	}
}

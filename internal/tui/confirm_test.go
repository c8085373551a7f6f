package tui

import (
	"testing"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// TestConfirmOfTheTeam checks that what cannot be taken back is done to the team once its name is typed, and only then,
// whatever row is selected.
func TestConfirmOfTheTeam(t *testing.T) {
	t.Parallel()
	x := &fuzzed{}
	s := newOnPaper(t, x, x)
	s.selects("member:worker-2")
	a, ok := view.ActionByID("delete-team")
	if !ok {
		t.Fatal("no such action")
	}
	did := func() int {
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.done)
	}
	for _, name := range []string{"worker-2", "dem", "demo"} {
		if n := did(); n != 0 {
			t.Fatalf("it was done %d times", n)
		}
		s.begin(a, term.Event{At: s.now}, "")
		s.shows("delete the team: this cannot be taken back. Type demo to do it")
		for _, c := range name {
			s.types(string(c))
		}
		s.types("enter")
	}
	s.until(func() bool { return did() > 0 })
	if x.done[0] != a.ID || did() != 1 {
		t.Errorf("it did %v", x.done)
	}
}

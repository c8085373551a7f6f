package tui

import (
	"fmt"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/internal/tui/term"
)

// TestClickOnQuit checks that a click on a choice of the palette does what Enter does there: on
// "leave" it leaves the screen.
func TestClickOnQuit(t *testing.T) {
	t.Parallel()
	f := &fuzzed{}
	s := newOnPaper(t, f, f)
	s.look(0)
	s.types(":")
	for _, key := range []string{"l", "e", "a", "v", "e"} {
		s.types(key)
	}
	i := slices.IndexFunc(s.m.matching(), func(c choice) bool { return c.command == "quit" })
	if i < 0 {
		t.Fatalf("no choice leaves the screen: %+v", s.m.matching())
	}
	g := slices.IndexFunc(s.frame.regions, func(g region) bool { return g.id == fmt.Sprintf("choice:%d", i) })
	if g < 0 {
		t.Fatalf("choice %d cannot be clicked: %+v", i, s.frame.regions)
	}
	at := s.frame.regions[g]
	if !s.event(term.Event{Kind: term.Mouse, Key: "left", X: at.left, Y: at.y, At: s.now}) {
		t.Error("the screen is not left")
	}
}

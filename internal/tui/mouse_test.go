package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
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

// TestClickOnTheLastLine checks that each key that the last line names can be clicked, as if it was pressed:
// an answer needs a request that was seen, and a line that has just changed takes no click.
func TestClickOnTheLastLine(t *testing.T) {
	t.Parallel()
	f := &fuzzed{request: view.Request{Kind: view.NeedPermission, State: "pending", Member: "worker-1", Tool: "Bash", Command: "make deploy"}}
	s := newOnPaper(t, f, f)
	answered := func(want int) {
		t.Helper()
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.answered) != want {
			t.Fatalf("answered %+v, want %d", f.answered, want)
		}
	}
	clicks := func(hint string) {
		t.Helper()
		line := s.frame.lines[len(s.frame.lines)-1]
		before, _, ok := strings.Cut(strip(line), hint)
		if !ok {
			t.Fatalf("no %q in %q", hint, line)
		}
		s.event(term.Event{Kind: term.Mouse, Key: "left", X: view.Width(before) + 1, Y: len(s.frame.lines) - 1, At: s.now})
		s.look(2 * burst)
	}
	s.shows("make deploy")
	clicks("x reject")
	if s.m.over.kind != noOverlay || s.m.toast == "" {
		t.Fatal("a line that has just changed takes a click")
	}
	s.m.toast = ""
	s.look(0)
	s.look(unread)
	clicks("x reject")
	if s.m.over.kind != inputOverlay || s.m.over.action.ID != "reject" {
		t.Fatalf("%q does nothing", "x reject")
	}
	s.look(unread)
	clicks("esc keep as a draft")
	if s.m.over.kind != noOverlay {
		t.Fatal("no click leads out")
	}
	s.look(unread)
	s.types("enter")
	s.look(unread)
	clicks("esc back")
	if s.m.over.kind != noOverlay {
		t.Fatal("no click leads out of the request")
	}
	answered(0)
	s.shows("make deploy")
	s.look(unread)
	clicks("a approve")
	s.shows("make deploy")
	s.all.Wait()
	answered(1)
}

// TestRightClick checks that the menu is that of the row under the pointer.
func TestRightClick(t *testing.T) {
	t.Parallel()
	s := newOnPaper(t, nil, &fuzzed{})
	s.look(0)
	i := slices.IndexFunc(s.frame.regions, func(g region) bool { return g.id == "task:101" })
	if i < 0 {
		t.Fatalf("no row of a task: %+v", s.frame.regions)
	}
	at := s.frame.regions[i]
	s.event(term.Event{Kind: term.Mouse, Key: "right", X: at.left + 4, Y: at.y, At: s.now})
	if s.m.cursor != "task:101" || s.m.over.kind != choiceOverlay || !slices.ContainsFunc(s.m.over.choices, func(c choice) bool { return c.action.ID == "assign" }) {
		t.Errorf("the menu of %s: %+v", s.m.cursor, s.m.over.choices)
	}
	s.m.over = overlay{kind: requestOverlay, approval: 99} // of another row
	s.event(term.Event{Kind: term.Mouse, Key: "right", X: at.left + 4, Y: at.y, At: s.now})
	if s.m.over.kind != requestOverlay {
		t.Errorf("over a request there is the menu of %s", s.m.cursor)
	}
}

// TestDoubleClick checks that a click selects a row, and that a second one soon after opens it.
func TestDoubleClick(t *testing.T) {
	t.Parallel()
	s := newOnPaper(t, nil, &fuzzed{})
	s.look(0)
	i := slices.IndexFunc(s.frame.regions, func(g region) bool { return g.id == "member:worker-2" })
	if i < 0 {
		t.Fatalf("no row of a member: %+v", s.frame.regions)
	}
	at := s.frame.regions[i]
	click := func(later time.Duration) {
		s.look(later)
		s.event(term.Event{Kind: term.Mouse, Key: "left", X: at.left + 4, Y: at.y, At: s.now})
	}
	click(0)
	click(5 * time.Second)
	if s.m.cursor != "member:worker-2" || s.m.at != inTeam {
		t.Fatalf("two clicks apart: %s in %s", s.m.cursor, s.m.at)
	}
	click(100 * time.Millisecond)
	if s.m.at != inScreen || s.m.screenOf != "worker-2" {
		t.Errorf("a double click leads to %s of %q", s.m.at, s.m.screenOf)
	}
}

// TestSelectionInASCII checks that the mark of the selection looks like no state.
func TestSelectionInASCII(t *testing.T) {
	t.Parallel()
	for sign, s := range asciiSigns {
		if sign != '›' && s == asciiSigns['›'] {
			t.Errorf("%c and the selection are both %s", sign, s)
		}
	}
}

package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
)

// TestPairs checks that every line of a diff is in exactly one row, on its side, and in order.
func TestPairs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":       "[]",
		"@  -+ ": "[{0 0} {1 1} {2 2} {3 4} {5 5}]",
		"---+":   "[{0 3} {1 -1} {2 -1}]",
		"-++":    "[{0 1} {-1 2}]",
		"+-":     "[{-1 0} {1 -1}]",
		`-\+\`:   "[{0 -1} {1 1} {-1 2} {3 3}]",
	} {
		var lines []view.DiffLine
		for _, kind := range []byte(text) {
			lines = append(lines, view.DiffLine{Kind: view.DiffKind(kind)})
		}
		if got := fmt.Sprint(pairs(lines)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestSideBySide checks that from 160 columns the two sides are drawn beside each other, with the comments below
// their lines, that the cursor visits the lines of both, and that w switches to one column.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	m := reviewed(
		view.Comment{Name: "2.1", State: "handled", Path: "cart.go", First: 42, Last: 42, Text: "why two?", Answer: "by the currency now"},
		view.Comment{Name: "3.1", State: "draft", Path: "cart.go", First: 41, Last: 41, Old: true, Text: "keep it"},
	)
	m.cols = sidesFrom
	m.enterDiff()
	golden(t, "changes-sides.txt", text(m.draw()))

	m.at = inChanges
	_, keys, _ := inHand(t, m, &desk{done: make(chan view.Deed, 1)})
	var at []string
	for range m.files[0].Lines {
		marked := ""
		for _, l := range m.draw().lines {
			if _, right, ok := strings.Cut(l, "│ "); ok && strings.Contains(right, "›") {
				marked += strings.TrimSpace(right[strings.Index(right, "›"):])
			}
		}
		at = append(at, marked)
		keys("j")
	}
	if len(at) != 7 || !strings.HasPrefix(at[0], "›41 -") || !strings.HasPrefix(at[1], "›41 +") || !strings.HasPrefix(at[2], "›42 +") || !strings.HasPrefix(at[3], "›42 ") {
		t.Errorf("the cursor goes through %q", at)
	}
	keys("w")
	if m.sides() || strings.Contains(text(m.draw()), "return c.sum  ") {
		t.Errorf("in one column:\n%s", text(m.draw()))
	}
	keys("w")
	if !m.sides() {
		t.Error("w does not turn back")
	}
	m.cols = sidesFrom - 1
	keys("w")
	if m.sides() || !strings.Contains(m.toast, "needs 160 columns") {
		t.Errorf("in a smaller terminal: %q", m.toast)
	}
}

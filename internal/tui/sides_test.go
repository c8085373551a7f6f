package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/sgr"
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
		with := make([]int, len(lines))
		for i := range with {
			with[i] = -1
		}
		if got := fmt.Sprint(pairs(lines, with)); got != want {
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

// TestChangedWords checks that the changed words of a line are in reverse in one column and side by side, that
// nothing else is, and that lines which replace each other are beside each other.
func TestChangedWords(t *testing.T) {
	t.Parallel()
	m := reviewed()
	m.setChanges(view.Changes{Member: "worker-1"}, view.ParseDiff(`diff --git a/cart.go b/cart.go
--- a/cart.go
+++ b/cart.go
@@ -1,4 +1,5 @@
-func Total(items []Item) int {
-	fmt.Println("x")
-	return sum(items)
+// Total is what items cost.
+func Total(items []Item) Money {
+	return sum(items)`+"\u202e"+`.Round(2)
+	数据库的表格 = 数据
 }
@@ -9 +10 @@
-	数据库的表 = 数据
+	数据库的行 = 数据
`))
	m.refresh()
	m.choose("file:cart.go")
	drawn := func() string {
		var out strings.Builder
		for _, l := range m.draw().lines {
			shown := ""
			for _, r := range sgr.Runs(l) {
				if r.Pen.Attr&sgr.Reverse != 0 {
					shown += "[" + r.Text + "]"
				} else {
					shown += r.Text
				}
			}
			out.WriteString(strings.TrimRight(shown, " ") + "\n")
		}
		return out.String()
	}
	if got := drawn(); strings.Contains(got, "Money]") {
		t.Errorf("without attributes:\n%s", got)
	}
	m.style = Style{On: true}
	golden(t, "changes-words.txt", drawn())
	m.cols = sidesFrom
	golden(t, "changes-words-sides.txt", drawn())
}

package tool

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/ledger"
)

// TestCommentFollowsItsLines: a comment is found where its lines have moved to, and reported as
// lost if they are gone.
func TestCommentFollowsItsLines(t *testing.T) {
	t.Parallel()
	const was = "a\nb {\n\tx()\n}\nc {\n\tx()\n}\nd"
	for _, c := range []struct {
		name        string
		first, last int
		now         string
		want        int // 0: not found
	}{
		{"unchanged", 6, 6, was, 6},
		{"moved down", 6, 6, "new\nnew\n" + was, 8},
		{"the one of two alike by its neighbours", 6, 6, "c {\n\tx()\n}\nb {\n\tx()\n}", 2},
		{"the nearer of two alike", 3, 3, "\tx()\n1\n2\n3\n4\n5\n6\n7\n\tx()", 1},
		{"changed", 6, 6, strings.ReplaceAll(was, "x()", "y()"), 0},
		{"emptied", 2, 4, "", 0},
		{"a brace among the lines around it", 7, 7, "new\nc {\n\tx()\n}\nd", 4},
		{"a brace alone", 7, 7, "}\n}\n}", 0},
		{"several lines", 2, 4, "b {\n\tx()\n}", 1},
		{"several lines, one changed", 2, 4, "b {\n\ty()\n}", 0},
	} {
		first, ok := locate(split(c.now), quoted(ledger.Anchor{Path: "f"}, split(was), c.first, c.last))
		if ok != (c.want > 0) || ok && first != c.want {
			t.Errorf("%s: line %d, %v; want %d", c.name, first, ok, c.want)
		}
	}
}

// TestCommentIsWhereItWas: in an unchanged file a comment is found at its place, and below it by
// the number of lines inserted before it.
func TestCommentIsWhereItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "}", "x := 1", "return x"}), 1, 20).Draw(t, "lines")
		first := rapid.IntRange(1, len(lines)).Draw(t, "first")
		last := rapid.IntRange(first, len(lines)).Draw(t, "last")
		a := quoted(ledger.Anchor{}, lines, first, last)
		at, ok := locate(lines, a)
		if !ok || strings.Join(lines[at-1:at-1+last-first+1], "\n") != a.Quote {
			t.Fatalf("at %d, %v", at, ok)
		}
		a = quoted(ledger.Anchor{}, append([]string{"only here"}, lines...), 1, 1)
		if at, ok := locate(append([]string{"one", "more"}, append([]string{"only here"}, lines...)...), a); !ok || at != 3 {
			t.Fatalf("moved to 3, found at %d, %v", at, ok)
		}
	})
}

package agent

import (
	"strings"
	"testing"
)

// TestLongPersonLine checks that a long line typed by a person is stored in a file that its entry
// names.
func TestLongPersonLine(t *testing.T) {
	t.Parallel()
	keep := func(text string) (short, name string) {
		if len(text) < 100 {
			return text, ""
		}
		return "short", "entry-1.txt"
	}
	for text, want := range map[string]string{"a line": `{"task":"a line"}`, strings.Repeat("x", 100): `{"long":"entry-1.txt","task":"` + strings.Repeat("x", 100) + `"}`} {
		in := PersonLine(text, keep)
		if string(in.Meta) != want || (in.Content == text) != (len(text) < 100) {
			t.Errorf("%.20s: content %.20s, meta %s", text, in.Content, in.Meta)
		}
	}
}

package term

import (
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// TestCombining checks that combining characters are drawn with the character before them, in the cells that a
// text is measured to take.
func TestCombining(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"e\u0301cole":             {"e\u0301", "c", "o", "l", "e"},
		"o\u0302\u0323 数x":        {"o\u0302\u0323", " ", "数", "", "x"},
		"\x1b[31mn\u0303\x1b[0mo": {"n\u0303", "o"},
		"\u0301a":                 {"a"},
		"1\ufe0f\u20e3 x":         {"1", " ", "x"},
	} {
		var got []string
		for _, c := range cellsOf(nil, text, 80, colorprofile.TrueColor)[:len(want)] {
			got = append(got, c.text)
		}
		for i, w := range want {
			if w != "" && got[i] != w {
				t.Errorf("%q: %q, want %q", text, strings.Join(got, "|"), strings.Join(want, "|"))
				break
			}
		}
	}
}

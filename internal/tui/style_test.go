package tui

import (
	"testing"

	"github.com/teamctl/teamctl/internal/view"
)

func TestPadAndCut(t *testing.T) {
	t.Parallel()
	style := Style{On: true}
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 5, "abc  "},
		{"abcdef", 4, "abc…"},
		{"数据数据", 5, "数据…"},
		{"abc", 0, ""},
		{style.Red("abcdef"), 4, "\x1b[31mabc…\x1b[0m"},
	} {
		got := view.Pad(c.in, c.width)
		if got != c.want {
			t.Errorf("view.Pad(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
		if view.Width(got) != c.width {
			t.Errorf("view.Pad(%q, %d) is %d cells wide", c.in, c.width, view.Width(got))
		}
	}
}

// TestBoldText checks that a selected row is bold without its wide gaps, as far as its first colour.
func TestBoldText(t *testing.T) {
	t.Parallel()
	s := Style{On: true}
	for row, want := range map[string]string{
		"":                       "",
		"a row":                  "\x1b[1ma row\x1b[0m",
		"a  b         c":         "\x1b[1ma  b\x1b[0m         \x1b[1mc\x1b[0m",
		"         a         ":    "         \x1b[1ma\x1b[0m         ",
		"a \x1b[2mb         c":   "\x1b[1ma \x1b[2mb         c\x1b[0m",
		"a        \x1b[2mb":      "\x1b[1ma\x1b[0m        \x1b[1m\x1b[2mb\x1b[0m",
		"a        \x1b[0m     b": "\x1b[1ma\x1b[0m        \x1b[1m\x1b[0m     b\x1b[0m",
	} {
		if got := s.boldText(row); got != want {
			t.Errorf("%q: %q; want %q", row, got, want)
		}
		if got := (Style{}).boldText(row); got != row {
			t.Errorf("%q without colours: %q", row, got)
		}
	}
}

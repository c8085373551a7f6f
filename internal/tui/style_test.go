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

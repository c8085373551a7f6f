package tui

import (
	"strings"
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

// TestBoldText checks that the words of a selected row are bold, before, in and after its colours, but not its
// wide gaps, coloured signs and dim text.
func TestBoldText(t *testing.T) {
	t.Parallel()
	s := Style{On: true}
	for row, want := range map[string]string{
		"":                      "",
		"a row  ":               "\x1b[1ma row\x1b[0m  ",
		"a  b         c":        "\x1b[1ma  b\x1b[0m         \x1b[1mc\x1b[0m",
		"         a         ":   "         \x1b[1ma\x1b[0m         ",
		"a \x1b[2mbc\x1b[0m d":  "\x1b[1ma \x1b[0m\x1b[2mbc\x1b[0m\x1b[1m d\x1b[0m",
		"\x1b[32m✓\x1b[0m  1 b": "\x1b[32m✓\x1b[0m\x1b[1m  1 b\x1b[0m",
		"\x1b[34mann\x1b[0m \x1b[33mb c\x1b[0m         d": "\x1b[1m\x1b[34mann\x1b[0m \x1b[1m\x1b[33mb c\x1b[0m         \x1b[1md\x1b[0m",
		"a \x1b[31mb…": "\x1b[1ma \x1b[0m\x1b[1m\x1b[31mb…\x1b[0m",
	} {
		if got := s.boldText(row); got != want {
			t.Errorf("%q: %q; want %q", row, got, want)
		}
		if got := (Style{}).boldText(row); got != row {
			t.Errorf("%q without colours: %q", row, got)
		}
	}
}

// TestScreenColors checks that the colours of a member's screen are drawn where the screen has colours, and that they end
// with it.
func TestScreenColors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		on, ascii bool
		want      string
	}{
		{on: true, want: " \x1b[0;31mred│数\x1b[0m"},
		{on: true, ascii: true, want: " \x1b[0;31mred|??\x1b[0m"},
		{want: " red│数"},
	} {
		m := shownOf(crowd(3), 100, 20)
		m.style, m.ascii = Style{On: c.on}, c.ascii
		m.at, m.screenOf, m.screen = inScreen, "worker-1", view.Frame{Lines: []string{"\x1b[0;31mred│数\x1b[5A\x1b]0;t\x07"}}
		m.refresh()
		if got := strings.TrimSuffix(m.draw().lines[2], "\x1b[0m"); got+map[bool]string{true: "\x1b[0m"}[c.on] != c.want {
			t.Errorf("colours %v, ASCII %v: %q, want %q", c.on, c.ascii, got, c.want)
		}
	}
}

package term

import (
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// TestColours checks what terminals with few colours get of those that an agent uses.
func TestColours(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][4]string{
		"\x1b[38;2;255;0;0mx":                     {"\x1b[38;2;255;0;0mx", "\x1b[38;5;196mx", "\x1b[91mx", "x"},
		"\x1b[38;5;196;48:5:21mx":                 {"\x1b[38;5;196;48;5;21mx", "\x1b[38;5;196;48;5;21mx", "\x1b[91;104mx", "x"},
		"\x1b[1;31;102mx":                         {"\x1b[1;31;102mx", "\x1b[1;31;102mx", "\x1b[1;31;102mx", "\x1b[1mx"},
		"\x1b[1m\x1b[22;3mx":                      {"\x1b[3mx", "\x1b[3mx", "\x1b[3mx", "\x1b[3mx"},
		"\x1b[4:3;58;5;9;5;8mx":                   {"\x1b[4mx", "\x1b[4mx", "\x1b[4mx", "\x1b[4mx"},
		"\x1b[4m\x1b[4:0;7mx":                     {"\x1b[7mx", "\x1b[7mx", "\x1b[7mx", "\x1b[7mx"},
		"\x1b[31mx\x1b[39mx":                      {"\x1b[31mx\x1b[mx", "\x1b[31mx\x1b[mx", "\x1b[31mx\x1b[mx", "xx"},
		"\x1b[1;31mx\x1b[39mx":                    {"\x1b[1;31mx\x1b[0;1mx", "\x1b[1;31mx\x1b[0;1mx", "\x1b[1;31mx\x1b[0;1mx", "\x1b[1mxx"},
		"\x1b[38:2:1:255:0:0m\x1b[48:2:0:0:255mx": {"\x1b[38;2;255;0;0;48;2;0;0;255mx", "\x1b[38;5;196;48;5;21mx", "\x1b[91;104mx", "x"},
		"\x1b[38;2;1;2mx\x1b[?31m\x1b[>4;1mx":     {"xx", "xx", "xx", "xx"},
	} {
		for i, p := range []colorprofile.Profile{colorprofile.TrueColor, colorprofile.ANSI256, colorprofile.ANSI, colorprofile.ASCII} {
			c := canvas{}
			for _, x := range cellsOf(nil, line, 2, p) {
				if x != blank {
					c.dip(x.style)
					c.out.WriteString(x.text)
				}
			}
			if got := c.out.String(); got != want[i] {
				t.Errorf("%q with %v: %q; want %q", line, p, got, want[i])
			}
		}
	}
}

// FuzzCells checks that no line makes more or fewer cells than there are columns, or ends the program.
func FuzzCells(f *testing.F) {
	for _, s := range []string{"a\x1b[1;31mb", "\x1b[38m\x1b[38;m\x1b[48;2m\x1b[58;5m\x1b[38:m\x1b[38:2m\x1b[38:2:1m\x1b[38:4:1:2:3:4m\x1b[4:m", "\x1b[" + strings.Repeat(";", 100) + "m", "\x1b[99999999999999999999m数\u0301"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, p := range []colorprofile.Profile{colorprofile.TrueColor, colorprofile.ANSI256, colorprofile.ANSI, colorprofile.ASCII} {
			c := newCanvas(true)
			c.profile = p
			c.painted(Frame{Lines: []string{line}}, func() (int, int) { return 10, 1 })
			if n := len(c.rows[0]); n != 10 {
				t.Errorf("%d cells", n)
			}
		}
	})
}

package term

import (
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// TestColours checks what terminals with few colours get of those that an agent uses.
func TestColours(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][4]string{
		"\x1b[38;2;255;0;0mx":                 {"\x1b[38;2;255;0;0mx", "\x1b[38;5;196mx", "\x1b[91mx", "x"},
		"\x1b[38;5;196;48:5:21mx":             {"\x1b[38;5;196;48;5;21mx", "\x1b[38;5;196;48;5;21mx", "\x1b[91;104mx", "x"},
		"\x1b[1;31;102mx":                     {"\x1b[1;31;102mx", "\x1b[1;31;102mx", "\x1b[1;31;102mx", "\x1b[1mx"},
		"\x1b[1m\x1b[22;3mx":                  {"\x1b[3mx", "\x1b[3mx", "\x1b[3mx", "\x1b[3mx"},
		"\x1b[4:3;58;5;9;5;8mx":               {"\x1b[4mx", "\x1b[4mx", "\x1b[4mx", "\x1b[4mx"},
		"\x1b[4m\x1b[4:0;7mx":                 {"\x1b[7mx", "\x1b[7mx", "\x1b[7mx", "\x1b[7mx"},
		"\x1b[31mx\x1b[39mx":                  {"\x1b[31mx\x1b[mx", "\x1b[31mx\x1b[mx", "\x1b[31mx\x1b[mx", "xx"},
		"\x1b[1;31mx\x1b[39mx":                {"\x1b[1;31mx\x1b[0;1mx", "\x1b[1;31mx\x1b[0;1mx", "\x1b[1;31mx\x1b[0;1mx", "\x1b[1mxx"},
		"\x1b[38;2;1;2mx\x1b[?31m\x1b[>4;1mx": {"xx", "xx", "xx", "xx"},
	} {
		for i, p := range []colorprofile.Profile{colorprofile.TrueColor, colorprofile.ANSI256, colorprofile.ANSI, colorprofile.ASCII} {
			c := canvas{}
			for _, x := range cellsOf(line, 2, p) {
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

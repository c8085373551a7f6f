package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/sgr"
)

func TestScreen(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"":                                      {},
		"plain":                                 {"", "plain"},
		"a\x1b[31mb\x1b[m\x1bc":                 {"", "a", "f1", "b"},
		"\x1b[1;2;3;4;9mx":                      {"b d i u s", "x"},
		"\x1b[97;100mx":                         {"f15 g8", "x"},
		"\x1b[38;5;208;48;5;17mx":               {"f208 g17", "x"},
		"\x1b[38;2;255;136;2;48;2;10;10;10mx":   {"f208 g232", "x"},
		"\x1b[7mx":                              {"f257 g256", "x"},
		"\x1b[7;31;44mx":                        {"f4 g1", "x"},
		"\x1b[7;31mx\x1b[27my":                  {"f257 g1", "x", "f1", "y"},
		"<b class=\"f1\">\x1b[31m&amp;<script>": {"", `<b class="f1">`, "f1", "&amp;<script>"},
		"\x1b]8;;javascript:x\x07\u202ea\u009b31mb\x1b]0;t": {"", "a31mb"},
		"\x1b[31m\u202e\x1b[mx":                             {"", "x"},
	} {
		if got := Screen([]string{line}); len(got) != 1 || !slices.Equal(got[0], want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestNearestColor checks that a colour outside the palette has the number of the nearest one of the
// cube and the grays.
func TestNearestColor(t *testing.T) {
	t.Parallel()
	for c := 0; c < 1<<24; c += 0x010305 {
		r, g, b := c>>16, c>>8&0xff, c&0xff
		least := math.MaxInt
		for n := 16; n < 256; n++ {
			least = min(least, distance(rgb(n), r, g, b))
		}
		if got := number(sgr.RGB|sgr.Color(c), foreColor); distance(rgb(got), r, g, b) != least {
			t.Fatalf("%06x: %d is %06x", c, got, rgb(got))
		}
	}
}

// TestScreenStyle checks that each class has a rule, and that the text and the first colours but
// black can be read on the background.
func TestScreenStyle(t *testing.T) {
	t.Parallel()
	style := string(ScreenStyle())
	for n := range 258 {
		for _, rule := range []string{fmt.Sprintf(".f%d{color:#", n), fmt.Sprintf(".g%d{background:#", n)} {
			if !strings.Contains(style, rule) {
				t.Errorf("no %s", rule)
			}
		}
	}
	light := func(n int) (l float64) { // relative luminance, WCAG 2
		for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
			v := float64(rgb(n)>>(8*i)&0xff) / 255
			if v <= 0.04045 {
				l += weight * v / 12.92
			} else {
				l += weight * math.Pow((v+0.055)/1.055, 2.4)
			}
		}
		return l
	}
	for n, least := range map[int]float64{foreColor: 7, 1: 4.5, 2: 4.5, 3: 4.5, 4: 4.5, 5: 4.5, 6: 4.5, 7: 7, 8: 4.5, 9: 4.5, 10: 7, 11: 7, 12: 7, 13: 7, 14: 7, 15: 7} {
		if got := (light(n) + 0.05) / (light(backColor) + 0.05); got < least {
			t.Errorf("the contrast of colour %d is %.1f", n, got)
		}
	}
}

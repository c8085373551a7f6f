package page

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/sgr"
)

// The screen of a member is that of a terminal with a dark background, whatever the browser
// prefers: programs choose their colours for one. The policy of the page permits no style
// attributes, so a colour is a class: f and its number for the text, g for the background.

// basic are the first sixteen colours of a terminal. Its others are the same everywhere.
var basic = [16]int{
	0x000000, 0xe05561, 0x4fbf67, 0xd6b04c, 0x4f97e8, 0xc678dd, 0x42b3c2, 0xd7dae0,
	0x8b93a1, 0xff7a85, 0x7bdc8e, 0xf0d078, 0x7fb6ff, 0xe39df5, 0x74d7e4, 0xffffff,
}

// The default colours, numbered behind the palette.
const (
	foreColor = 256 // white, 7
	backColor = 257
)

// rgb returns a colour by its number.
func rgb(n int) int {
	switch {
	case n == foreColor:
		return basic[7]
	case n == backColor:
		return 0x16181d
	case n < 16:
		return basic[n]
	case n < 232:
		n -= 16
		return level(n/36)<<16 | level(n/6%6)<<8 | level(n%6)
	}
	return (8 + 10*(n-232)) * 0x010101
}

// level returns one of the six values of red, green and blue in the cube of colours 16 to 231.
func level(n int) int {
	if n == 0 {
		return 0
	}
	return 55 + 40*n
}

// number returns the number of a colour; of one outside the palette that of the nearest.
func number(c sgr.Color, unset int) int {
	switch {
	case c == sgr.Default:
		return unset
	case c&sgr.RGB == 0:
		return int(c & 0xff)
	}
	step := func(v int) int { // the nearest level
		if v < 48 {
			return 0
		}
		return max(1, (v-35)/40)
	}
	r, g, b := int(c>>16&0xff), int(c>>8&0xff), int(c&0xff)
	cube := 16 + 36*step(r) + 6*step(g) + step(b)
	gray := 232 + min(max(0, (r+g+b)/3-3)/10, 23)
	if distance(rgb(gray), r, g, b) < distance(rgb(cube), r, g, b) {
		return gray
	}
	return cube
}

func distance(c, r, g, b int) int {
	r, g, b = r-c>>16, g-c>>8&0xff, b-c&0xff
	return r*r + g*g + b*b
}

// Screen returns the lines of a screen for the script: of each line the classes and the text of its
// parts, in turn.
func Screen(lines []string) [][]string {
	out := make([][]string, len(lines))
	for i, l := range lines {
		out[i] = []string{}
		for _, r := range sgr.Runs(l) {
			if clean := plain.Clean(r.Text); clean != "" {
				out[i] = append(out[i], classes(r.Pen), clean)
			}
		}
	}
	return out
}

// classes returns the classes of what a pen has written, "" for the default pen.
func classes(p sgr.Pen) string {
	var b []byte
	add := func(class byte, n int) {
		if len(b) > 0 {
			b = append(b, ' ')
		}
		if b = append(b, class); n >= 0 {
			b = strconv.AppendInt(b, int64(n), 10)
		}
	}
	fg, bg := number(p.FG, foreColor), number(p.BG, backColor)
	if p.Attr&sgr.Reverse != 0 {
		fg, bg = bg, fg
	}
	if fg != foreColor {
		add('f', fg)
	}
	if bg != backColor {
		add('g', bg)
	}
	for _, a := range []struct {
		attr  sgr.Attr
		class byte
	}{{sgr.Bold, 'b'}, {sgr.Faint, 'd'}, {sgr.Italic, 'i'}, {sgr.Underline, 'u'}, {sgr.Strike, 's'}} {
		if p.Attr&a.attr != 0 {
			add(a.class, -1)
		}
	}
	return string(b)
}

// ScreenStyle is the style of a member's screen, which other documents do not load.
func ScreenStyle() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#screen{color-scheme:dark;color:#%06x;background:#%06x}\n", rgb(foreColor), rgb(backColor))
	b.WriteString(`#screen .b{font-weight:700}#screen .d{opacity:.7}#screen .i{font-style:italic}
#screen .u{text-decoration:underline}#screen .s{text-decoration:line-through}#screen .u.s{text-decoration:underline line-through}
`)
	for n := range backColor + 1 {
		fmt.Fprintf(&b, ".f%d{color:#%06x}.g%d{background:#%06x}\n", n, rgb(n), n, rgb(n))
	}
	return b.Bytes()
}

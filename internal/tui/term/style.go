package term

import (
	"image/color"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// style is how text is drawn.
type style struct {
	fg, bg                                          tint
	bold, faint, italic, underline, reverse, strike bool
}

// tint is a colour in four bytes, since each cell has two: a kind, and the colour's number or its
// red, green and blue. 0 is the terminal's default.
type tint uint32

const (
	tintBasic tint = (iota + 1) << 24
	tintIndexed
	tintRGB
	tintValue = 1<<24 - 1 // mask
)

func tintOf(c color.Color) tint {
	switch c := c.(type) {
	case nil:
		return 0
	case ansi.BasicColor:
		return tintBasic | tint(c)
	case ansi.IndexedColor:
		return tintIndexed | tint(c)
	}
	r, g, b, _ := c.RGBA()
	return tintRGB | tint(r>>8)<<16 | tint(g>>8)<<8 | tint(b>>8)
}

// color returns nil for the default.
func (t tint) color() color.Color {
	switch t &^ tintValue {
	case tintBasic:
		return ansi.BasicColor(t)
	case tintIndexed:
		return ansi.IndexedColor(t)
	case tintRGB:
		return color.RGBA{uint8(t >> 16), uint8(t >> 8), uint8(t), 255}
	}
	return nil
}

// read applies the parameters of Select Graphic Rendition (ECMA-48; xterm, "Control Sequences"). It
// ignores blinking and hidden text, and takes every underline for a single one.
func (s *style) read(params []parameter) {
	if len(params) == 0 {
		*s = style{}
	}
	for i := 0; i < len(params); i++ {
		n, more := max(params[i].n, 0), params[i].more
		switch {
		case n == 0:
			*s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.faint = true
		case n == 3:
			s.italic = true
		case n == 4:
			s.underline = true
			if more && i+1 < len(params) { // 4:0 is none, 4:3 a curly one
				s.underline = params[i+1].n != 0
			}
		case n == 7:
			s.reverse = true
		case n == 9:
			s.strike = true
		case n == 21: // double
			s.underline = true
		case n == 22:
			s.bold, s.faint = false, false
		case n == 23:
			s.italic = false
		case n == 24:
			s.underline = false
		case n == 27:
			s.reverse = false
		case n == 29:
			s.strike = false
		case n >= 30 && n <= 37:
			s.fg = tintBasic | tint(n-30)
		case n >= 40 && n <= 47:
			s.bg = tintBasic | tint(n-40)
		case n >= 90 && n <= 97:
			s.fg = tintBasic | tint(n-90+8)
		case n >= 100 && n <= 107:
			s.bg = tintBasic | tint(n-100+8)
		case n == 39:
			s.fg = 0
		case n == 49:
			s.bg = 0
		case n == 38 || n == 48 || n == 58: // 58 is the colour of an underline
			c, used, ok := extended(params[i:])
			if !ok { // what follows cannot be told apart
				return
			}
			switch n {
			case 38:
				s.fg = c
			case 48:
				s.bg = c
			}
			i += used - 1
			continue
		}
		for more && i+1 < len(params) { // parameters of this one
			i++
			more = params[i].more
		}
	}
}

// extended parses the colour after 38, 48 or 58: "5;n", "2;r;g;b", "5:n", "2:r:g:b", "2:space:r:g:b". It
// returns the number of parameters that it has used, with that.
func extended(params []parameter) (c tint, used int, ok bool) {
	for used = 1; params[used-1].more && used < len(params); used++ {
	}
	of := params[1:used] // with colons
	if used == 1 {
		if of = params[1:]; len(of) == 0 {
			return 0, 0, false
		}
		n := map[int]int{2: 4, 5: 2}[of[0].n]
		if n == 0 || len(of) < n {
			return 0, 0, false
		}
		of, used = of[:n], 1+n
	}
	part := func(i int) tint { return tint(min(max(of[i].n, 0), 255)) }
	rgb := func(i int) tint { return tintRGB | part(i)<<16 | part(i+1)<<8 | part(i+2) }
	switch {
	case of[0].n == 5 && len(of) >= 2:
		c = tintIndexed | part(1)
		if n := part(1); n < 16 {
			c = tintBasic | n
		}
	case of[0].n == 2 && len(of) == 4:
		c = rgb(1)
	case of[0].n == 2 && len(of) > 4:
		c = rgb(2)
	}
	return c, used, true
}

// shown returns the style as a terminal with some colours has it.
func (s style) shown(p colorprofile.Profile) style {
	s.fg, s.bg = reduced(s.fg, p), reduced(s.bg, p)
	return s
}

// reduced returns the nearest colour that a terminal has.
func reduced(c tint, p colorprofile.Profile) tint {
	switch {
	case c == 0 || p == colorprofile.TrueColor:
		return c
	case p == colorprofile.ANSI256:
		if c&^tintValue == tintRGB {
			return tintOf(ansi.Convert256(c.color()))
		}
		return c
	case p == colorprofile.ANSI:
		return tintOf(ansi.Convert16(c.color()))
	}
	return 0
}

// sequence changes what a terminal draws with from another style.
func (s style) sequence(was style) string {
	if s == (style{}) {
		return ansi.ResetStyle
	}
	var seq ansi.Style
	if was.bold && !s.bold || was.faint && !s.faint || was.italic && !s.italic || was.underline && !s.underline ||
		was.reverse && !s.reverse || was.strike && !s.strike || was.fg != 0 && s.fg == 0 || was.bg != 0 && s.bg == 0 {
		seq, was = seq.Reset(), style{}
	}
	add := func(is, was bool, f func() ansi.Style) {
		if is && !was {
			seq = f()
		}
	}
	add(s.bold, was.bold, func() ansi.Style { return seq.Bold() })
	add(s.faint, was.faint, func() ansi.Style { return seq.Faint() })
	add(s.italic, was.italic, func() ansi.Style { return seq.Italic(true) })
	add(s.underline, was.underline, func() ansi.Style { return seq.Underline(true) })
	add(s.reverse, was.reverse, func() ansi.Style { return seq.Reverse(true) })
	add(s.strike, was.strike, func() ansi.Style { return seq.Strikethrough(true) })
	if s.fg != was.fg {
		seq = seq.ForegroundColor(s.fg.color())
	}
	if s.bg != was.bg {
		seq = seq.BackgroundColor(s.bg.color())
	}
	return seq.String()
}

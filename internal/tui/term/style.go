package term

import (
	"image/color"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// style is how text is drawn. Colours are nil by default.
type style struct {
	fg, bg                                          color.Color
	bold, faint, italic, underline, reverse, strike bool
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
			s.fg = ansi.BasicColor(n - 30)
		case n >= 40 && n <= 47:
			s.bg = ansi.BasicColor(n - 40)
		case n >= 90 && n <= 97:
			s.fg = ansi.BasicColor(n - 90 + 8)
		case n >= 100 && n <= 107:
			s.bg = ansi.BasicColor(n - 100 + 8)
		case n == 39:
			s.fg = nil
		case n == 49:
			s.bg = nil
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
func extended(params []parameter) (c color.Color, used int, ok bool) {
	for used = 1; params[used-1].more && used < len(params); used++ {
	}
	of := params[1:used] // with colons
	if used == 1 {
		if of = params[1:]; len(of) == 0 {
			return nil, 0, false
		}
		n := map[int]int{2: 4, 5: 2}[of[0].n]
		if n == 0 || len(of) < n {
			return nil, 0, false
		}
		of, used = of[:n], 1+n
	}
	part := func(i int) uint8 { return uint8(min(max(of[i].n, 0), 255)) }
	switch {
	case of[0].n == 5 && len(of) >= 2:
		c = ansi.IndexedColor(part(1))
		if n := part(1); n < 16 {
			c = ansi.BasicColor(n)
		}
	case of[0].n == 2 && len(of) == 4:
		c = color.RGBA{part(1), part(2), part(3), 255}
	case of[0].n == 2 && len(of) > 4:
		c = color.RGBA{part(2), part(3), part(4), 255}
	}
	return c, used, true
}

// shown returns the style as a terminal with some colours has it.
func (s style) shown(p colorprofile.Profile) style {
	s.fg, s.bg = reduced(s.fg, p), reduced(s.bg, p)
	return s
}

// reduced returns the nearest colour that a terminal has.
func reduced(c color.Color, p colorprofile.Profile) color.Color {
	switch {
	case c == nil || p == colorprofile.TrueColor:
		return c
	case p == colorprofile.ANSI256:
		if _, rgb := c.(color.RGBA); rgb {
			return ansi.Convert256(c)
		}
		return c
	case p == colorprofile.ANSI:
		return ansi.Convert16(c)
	}
	return nil
}

// sequence changes what a terminal draws with from another style.
func (s style) sequence(was style) string {
	if s == (style{}) {
		return ansi.ResetStyle
	}
	var seq ansi.Style
	if was.bold && !s.bold || was.faint && !s.faint || was.italic && !s.italic || was.underline && !s.underline ||
		was.reverse && !s.reverse || was.strike && !s.strike || was.fg != nil && s.fg == nil || was.bg != nil && s.bg == nil {
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
		seq = seq.ForegroundColor(s.fg)
	}
	if s.bg != was.bg {
		seq = seq.BackgroundColor(s.bg)
	}
	return seq.String()
}

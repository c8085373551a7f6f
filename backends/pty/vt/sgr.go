package vt

import "strconv"

// sgr changes a pen by the parameters of "CSI ... m".
func sgr(pen style, ps []param) style {
	if len(ps) == 0 {
		return style{}
	}
	for i := 0; i < len(ps); i++ {
		n := max(ps[i].n, 0)
		subs := 0 // of this parameter
		for i+1+subs < len(ps) && ps[i+1+subs].sub {
			subs++
		}
		switch {
		case n == 0:
			pen = style{}
		case n == 4:
			pen.line = 1
			if subs > 0 {
				pen.line = uint8(clamp(ps[i+1].n, 0, 5))
			}
		case n == 21:
			pen.line = 2
		case n == 24:
			pen.line = 0
		case n == 22:
			pen.attr &^= bold | faint
		case n == 5, n == 6:
			pen.attr |= blink
		case setsAttr[n] != 0:
			pen.attr |= setsAttr[n]
		case clearsAttr[n] != 0:
			pen.attr &^= clearsAttr[n]
		case n >= 30 && n <= 37:
			pen.fg = palette | uint32(n-30)
		case n >= 40 && n <= 47:
			pen.bg = palette | uint32(n-40)
		case n >= 90 && n <= 97:
			pen.fg = palette | uint32(n-90+8)
		case n >= 100 && n <= 107:
			pen.bg = palette | uint32(n-100+8)
		case n == 39:
			pen.fg = 0
		case n == 49:
			pen.bg = 0
		case n == 59:
			pen.under = 0
		case n == 38 || n == 48 || n == 58:
			c, used, ok := colour(ps[i+1:], subs)
			if ok {
				switch n {
				case 38:
					pen.fg = c
				case 48:
					pen.bg = c
				case 58:
					pen.under = c
				}
			}
			i += used
			continue
		}
		i += subs
	}
	return pen
}

var setsAttr = map[int]uint16{1: bold, 2: faint, 3: italic, 7: reverse, 8: conceal, 9: strike, 53: overline}

var clearsAttr = map[int]uint16{23: italic, 25: blink, 27: reverse, 28: conceal, 29: strike, 55: overline}

// colour parses "5;n", "2;r;g;b" and the forms with colons, where the colour
// space may precede r.
func colour(ps []param, subs int) (c uint32, used int, ok bool) {
	if len(ps) == 0 {
		return 0, 0, false
	}
	b := func(i int) uint32 { return uint32(clamp(ps[i].n, 0, 255)) }
	if subs > 0 {
		switch {
		case ps[0].n == 5 && subs >= 2:
			return palette | b(1), subs, true
		case ps[0].n == 2 && subs >= 5:
			return direct | b(2)<<16 | b(3)<<8 | b(4), subs, true
		case ps[0].n == 2 && subs == 4:
			return direct | b(1)<<16 | b(2)<<8 | b(3), subs, true
		}
		return 0, subs, false
	}
	switch {
	case ps[0].n == 5 && len(ps) >= 2:
		return palette | b(1), 2, true
	case ps[0].n == 2 && len(ps) >= 4:
		return direct | b(1)<<16 | b(2)<<8 | b(3), 4, true
	}
	return 0, len(ps), false
}

// appendSGR writes the sequence that makes st the pen, whatever it was before.
func appendSGR(b []byte, st style) []byte {
	b = append(b, "\x1b[0"...)
	for _, a := range []struct {
		bit uint16
		n   string
	}{{bold, ";1"}, {faint, ";2"}, {italic, ";3"}, {blink, ";5"}, {reverse, ";7"}, {conceal, ";8"}, {strike, ";9"}, {overline, ";53"}} {
		if st.attr&a.bit != 0 {
			b = append(b, a.n...)
		}
	}
	switch {
	case st.line == 1:
		b = append(b, ";4"...)
	case st.line > 1:
		b = append(b, ";4:"...)
		b = strconv.AppendUint(b, uint64(st.line), 10)
	}
	b = appendColour(b, st.fg, 30)
	b = appendColour(b, st.bg, 40)
	if st.under != 0 {
		b = appendColour(b, st.under, 50)
	}
	return append(b, 'm')
}

// appendColour writes one colour; base is 30 for the text, 40 for the
// background, 50 for the underline.
func appendColour(b []byte, c uint32, base int) []byte {
	n := int(c & 0xffffff)
	num := func(n int) { b = strconv.AppendInt(append(b, ';'), int64(n), 10) }
	switch {
	case c == 0:
	case c&direct != 0:
		num(base + 8)
		num(2)
		num(n >> 16)
		num(n >> 8 & 255)
		num(n & 255)
	case base < 50 && n < 8:
		num(base + n)
	case base < 50 && n < 16:
		num(base + 60 + n - 8)
	default:
		num(base + 8)
		num(5)
		num(n)
	}
	return b
}

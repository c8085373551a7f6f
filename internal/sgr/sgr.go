// Package sgr reads and writes the colours of terminal text, which are the parameters of Select
// Graphic Rendition (CSI ... m). Only what every terminal shows alike is kept: colours, bold, faint,
// italic, underlined, reversed and struck text.
package sgr

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Color is Default, Palette with an index from 0 to 255, or RGB with red, green and blue in eight
// bits each.
type Color uint32

// Kinds of colours.
const (
	Default Color = 0
	Palette Color = 1 << 24
	RGB     Color = 2 << 24
)

// Attr is a set of attributes.
type Attr uint8

// Attributes.
const (
	Bold Attr = 1 << iota
	Faint
	Italic
	Underline
	Reverse
	Strike
)

// attrs has the parameter that sets each attribute.
var attrs = [...]struct {
	attr Attr
	n    int
}{{Bold, 1}, {Faint, 2}, {Italic, 3}, {Underline, 4}, {Reverse, 7}, {Strike, 9}}

// Pen is how characters look; its zero value is the terminal's default.
type Pen struct {
	FG, BG Color
	Attr   Attr
}

// Set applies the parameters of a sequence, which are what is between "CSI" and "m". It ignores
// those that it does not know.
func (p *Pen) Set(params string) {
	groups := strings.Split(params, ";")
	for i := 0; i < len(groups); i++ {
		first, subs, colon := strings.Cut(groups[i], ":")
		n, err := strconv.Atoi(first)
		if err != nil {
			n = 0 // an omitted parameter is 0
			if first != "" {
				continue
			}
		}
		switch {
		case n == 38 || n == 48 || n == 58:
			rest := groups[i+1:]
			if colon {
				rest = strings.Split(subs, ":")
				if len(rest) > 4 && rest[0] == "2" { // with a colour space
					rest = append([]string{"2"}, rest[2:]...)
				}
			}
			c, used, ok := extended(rest)
			if ok && n == 38 {
				p.FG = c
			}
			if ok && n == 48 {
				p.BG = c
			}
			if !colon {
				i += used
			}
		case n == 4 && subs == "0":
			p.Attr &^= Underline
		default:
			p.set(n)
		}
	}
}

func (p *Pen) set(n int) {
	switch {
	case n == 0:
		*p = Pen{}
	case n == 21:
		p.Attr |= Underline
	case n == 22:
		p.Attr &^= Bold | Faint
	case n >= 23 && n <= 29:
		p.Attr &^= attrOf(n - 20)
	case n >= 30 && n <= 37:
		p.FG = Palette | Color(n-30)
	case n == 39:
		p.FG = Default
	case n >= 40 && n <= 47:
		p.BG = Palette | Color(n-40)
	case n == 49:
		p.BG = Default
	case n >= 90 && n <= 97:
		p.FG = Palette | Color(n-90+8)
	case n >= 100 && n <= 107:
		p.BG = Palette | Color(n-100+8)
	default:
		p.Attr |= attrOf(n)
	}
}

func attrOf(n int) Attr {
	for _, a := range attrs {
		if a.n == n {
			return a.attr
		}
	}
	return 0
}

// extended parses "5;n" and "2;r;g;b", and returns how many parameters it has read.
func extended(ps []string) (c Color, used int, ok bool) {
	n := func(i int) Color {
		v, err := strconv.Atoi(ps[i])
		ok = ok && (err == nil || ps[i] == "") && v >= 0 && v < 256
		return Color(v & 255)
	}
	ok = true
	switch {
	case len(ps) >= 2 && ps[0] == "5":
		return Palette | n(1), 2, ok
	case len(ps) >= 4 && ps[0] == "2":
		return RGB | n(1)<<16 | n(2)<<8 | n(3), 4, ok
	}
	return Default, len(ps), false
}

// Append appends the sequence that makes p the pen, whatever it was before.
func (p Pen) Append(b []byte) []byte {
	b = append(b, "\x1b[0"...)
	for _, a := range attrs {
		if p.Attr&a.attr != 0 {
			b = strconv.AppendInt(append(b, ';'), int64(a.n), 10)
		}
	}
	b = p.FG.appendTo(b, 30)
	b = p.BG.appendTo(b, 40)
	return append(b, 'm')
}

// appendTo appends the parameters of a colour: base is 30 for the text and 40 for its background.
func (c Color) appendTo(b []byte, base int) []byte {
	n := int(c & 0xffffff)
	num := func(n int) { b = strconv.AppendInt(append(b, ';'), int64(n), 10) }
	switch {
	case c == Default:
	case c&RGB != 0:
		num(base + 8)
		num(2)
		num(n >> 16)
		num(n >> 8 & 255)
		num(n & 255)
	case n < 8:
		num(base + n)
	case n < 16:
		num(base + 60 + n - 8)
	default:
		num(base + 8)
		num(5)
		num(n)
	}
	return b
}

// Lines splits the text of a screen, in which a pen holds until the next one, into lines that have
// each its own colours and end with the default pen. Control characters and all other sequences
// are removed.
func Lines(text string) []string {
	var out []string
	var pen Pen
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		out = append(out, pen.line(line))
	}
	return out
}

// line is one line of Lines, at whose beginning the pen is that of the line before.
func (p *Pen) line(s string) string {
	if *p == (Pen{}) && harmless(s) {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	var now Pen
	p.read(s, func(text string) {
		if now != *p {
			now = *p
			b = now.Append(b)
		}
		b = append(b, text...)
	})
	if now != (Pen{}) {
		b = append(b, "\x1b[0m"...)
	}
	return string(b)
}

// read applies the sequences of a line, and calls each with the text between them, which has no
// control characters.
func (p *Pen) read(s string, each func(text string)) {
	from := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r >= 0x20 && r < 0x7f || r >= 0xa0 && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		if from < i {
			each(s[from:i])
		}
		if r == 0x1b {
			numbers := false
			if n, numbers = sequence(s[i:]); numbers && s[i+n-1] == 'm' {
				p.Set(s[i+2 : i+n-1])
			}
		}
		i += n
		from = i
	}
	if from < len(s) {
		each(s[from:])
	}
}

// Run is a part of a line that one pen has written.
type Run struct {
	Pen  Pen
	Text string
}

// Runs splits a line into runs, of which no two neighbours have the same pen. Control characters
// and all sequences are removed.
func Runs(line string) (out []Run) {
	var p Pen
	p.read(line, func(text string) {
		if n := len(out); n > 0 && out[n-1].Pen == p {
			out[n-1].Text += text
			return
		}
		out = append(out, Run{p, text})
	})
	return out
}

// harmless reports whether s is printable ASCII.
func harmless(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// sequence returns the length of the escape sequence at the beginning of s, and whether it is a
// complete one of CSI whose parameters are numbers.
func sequence(s string) (n int, numbers bool) {
	if len(s) < 2 {
		return len(s), false
	}
	i := 2
	switch s[1] {
	case '[':
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == ';' || s[i] == ':') {
			i++
		}
		numbers = true
		for i < len(s) && s[i] >= 0x20 && s[i] < 0x40 { // private markers and intermediates
			numbers, i = false, i+1
		}
		if i < len(s) && s[i] >= 0x40 && s[i] < 0x7f {
			return i + 1, numbers
		}
		return i, false
	case ']', 'P', 'X', '^', '_': // a string, to its end
		for ; i < len(s); i++ {
			switch {
			case s[i] == 0x07:
				return i + 1, false
			case strings.HasPrefix(s[i:], "\x1b\\"):
				return i + 2, false
			case s[i] == 0x1b:
				return i, false
			}
		}
		return i, false
	}
	for i = 1; i < len(s) && s[i] >= 0x20 && s[i] < 0x30; i++ {
	}
	if i < len(s) && s[i] >= 0x30 && s[i] < 0x7f {
		i++
	}
	return i, false
}

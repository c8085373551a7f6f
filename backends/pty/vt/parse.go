package vt

import (
	"unicode/utf8"
)

// parser is the state machine of DEC's terminals (ECMA-48 with DEC's
// additions), for UTF-8: bytes from 0x80 on are never control characters.
type parser struct {
	state   int
	private byte   // '<', '=', '>' or '?' after CSI
	inter   []byte // intermediates
	params  []param
	str     []byte // of an OSC
	utf     [utf8.UTFMax]byte
	utfLen  int
}

// param is a number; sub means that it belongs to the previous one (4:3).
type param struct {
	n   int // -1: omitted
	sub bool
}

const (
	ground = iota
	escape
	escapeInter
	csi
	csiIgnore
	osc   // ends with BEL or ST
	other // DCS, SOS, PM, APC: skipped until ST
)

const (
	paramsMax = 32
	stringMax = 4096
	numberMax = 65535
)

// Write interprets the output of a program. It always accepts all of it.
func (s *Screen) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if s.parser.state == ground && s.parser.utfLen == 0 {
			i := 0
			for i < len(p) && p[i] >= 0x20 && p[i] < 0x7f {
				i++
			}
			if i > 0 {
				s.ascii(p[:i])
				p = p[i:]
				continue
			}
			if p[0] >= utf8.RuneSelf && utf8.FullRune(p) {
				if r, size := utf8.DecodeRune(p); size > 1 {
					s.unicode(r)
					p = p[size:]
					continue
				}
			}
		}
		s.step(p[0])
		p = p[1:]
	}
	return n, nil
}

func (s *Screen) unicode(r rune) {
	if r >= 0x80 && r < 0xa0 {
		return // C1: no program writes it in UTF-8 on purpose
	}
	s.put(r)
}

func (s *Screen) step(b byte) {
	p := &s.parser
	switch b { // control characters that are valid in any state
	case 0x18, 0x1a: // CAN, SUB
		p.state, p.utfLen = ground, 0
		return
	case 0x1b:
		if p.state == osc {
			s.doOSC()
		}
		p.state, p.utfLen = escape, 0
		p.private, p.inter, p.params = 0, p.inter[:0], p.params[:0]
		return
	}
	switch p.state {
	case ground:
		s.stepGround(b)
	case escape, escapeInter:
		switch {
		case b < 0x20:
			s.control(b)
		case b < 0x30:
			p.inter = addInter(p.inter, b)
			p.state = escapeInter
		case p.state == escape && b == '[':
			p.state = csi
		case p.state == escape && b == ']':
			p.state, p.str = osc, p.str[:0]
		case p.state == escape && (b == 'P' || b == 'X' || b == '^' || b == '_'):
			p.state = other
		case b < 0x7f:
			p.state = ground
			s.doEscape(b)
		default:
			if b > 0x7f {
				p.state = ground
			}
		}
	case csi:
		s.stepCSI(b)
	case csiIgnore:
		if b < 0x20 {
			s.control(b)
		} else if b >= 0x40 && b < 0x7f {
			p.state = ground
		}
	case osc:
		if b == 0x07 {
			p.state = ground
			s.doOSC()
		} else if len(p.str) < stringMax {
			p.str = append(p.str, b)
		}
	}
}

func addInter(to []byte, b byte) []byte {
	if len(to) < 4 {
		to = append(to, b)
	}
	return to
}

func (s *Screen) stepGround(b byte) {
	p := &s.parser
	if p.utfLen > 0 || b >= utf8.RuneSelf {
		if p.utfLen > 0 && (b < 0x80 || b >= 0xc0) { // the sequence was truncated
			p.utfLen = 0
			s.put(utf8.RuneError)
			s.stepGround(b)
			return
		}
		p.utf[p.utfLen] = b
		p.utfLen++
		if utf8.FullRune(p.utf[:p.utfLen]) || p.utfLen == len(p.utf) {
			r, _ := utf8.DecodeRune(p.utf[:p.utfLen])
			p.utfLen = 0
			s.unicode(r)
		}
		return
	}
	if b < 0x20 {
		s.control(b)
	} else if b < 0x7f {
		s.put(rune(b))
	}
}

func (s *Screen) stepCSI(b byte) {
	p := &s.parser
	switch {
	case b < 0x20:
		s.control(b)
	case b >= '0' && b <= '9':
		if len(p.params) == 0 {
			p.params = append(p.params, param{n: -1})
		}
		q := &p.params[len(p.params)-1]
		q.n = min(max(q.n, 0)*10+int(b-'0'), numberMax)
	case b == ';' || b == ':':
		if len(p.params) == 0 {
			p.params = append(p.params, param{n: -1})
		}
		if len(p.params) >= paramsMax {
			p.state = csiIgnore
			return
		}
		p.params = append(p.params, param{n: -1, sub: b == ':'})
	case b >= '<' && b <= '?':
		if len(p.params) > 0 || p.private != 0 {
			p.state = csiIgnore
			return
		}
		p.private = b
	case b < 0x30:
		p.inter = addInter(p.inter, b)
	case b >= 0x40 && b < 0x7f:
		p.state = ground
		s.doCSI(b)
	case b >= 0x80:
		p.state = ground
	}
}

// arg returns a parameter, or def if it is omitted or 0.
func (s *Screen) arg(i, def int) int {
	if i < len(s.parser.params) && s.parser.params[i].n > 0 {
		return s.parser.params[i].n
	}
	return def
}

// raw returns a parameter, or def if it is omitted.
func (s *Screen) raw(i, def int) int {
	if i < len(s.parser.params) && s.parser.params[i].n >= 0 {
		return s.parser.params[i].n
	}
	return def
}

func (s *Screen) control(b byte) {
	switch b {
	case 0x08:
		if s.cur.wrap {
			s.cur.wrap = false
		}
		s.cur.x = max(0, s.cur.x-1)
	case 0x09:
		s.tab(1)
	case 0x0a, 0x0b, 0x0c:
		if s.newline {
			s.cur.x = 0
		}
		s.cur.wrap = false
		s.index()
	case 0x0d:
		s.cur.x, s.cur.wrap = 0, false
	case 0x0e:
		s.cur.shift = 1
	case 0x0f:
		s.cur.shift = 0
	}
}

func (s *Screen) tab(n int) {
	for range n {
		for s.cur.x < s.cols-1 {
			s.cur.x++
			if s.tabs[s.cur.x] {
				break
			}
		}
	}
}

// graphics are the characters of DEC's line drawing set, from 0x5f on.
var graphics = []rune("\u00a0◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

func graphic(r rune) rune {
	if i := int(r) - 0x5f; i >= 0 && i < len(graphics) {
		return graphics[i]
	}
	return r
}

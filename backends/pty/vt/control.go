package vt

import (
	"bytes"
	"strings"
)

// DEC private modes that Screen itself implements.
const (
	modeOrigin   = 6
	modeWrap     = 7
	modeNoWrap   = -7 // stored as the difference from the default
	modeHidden   = -25
	modeCursor   = 25
	modePaste    = 2004
	modeAlt47    = 47
	modeAlt1047  = 1047
	modeSave1048 = 1048
	modeAlt1049  = 1049
)

func (s *Screen) doEscape(b byte) {
	p := &s.parser
	if len(p.inter) > 0 {
		switch p.inter[0] {
		case '(', ')':
			set := byte(0)
			if b == '0' {
				set = '0'
			}
			s.cur.charset[p.inter[0]-'('] = set
		case '#':
			if b == '8' {
				s.align()
			}
		}
		return
	}
	switch b {
	case '7':
		s.save()
	case '8':
		s.restore()
	case '=':
		s.keypad = true
	case '>':
		s.keypad = false
	case 'D':
		s.cur.wrap = false
		s.index()
	case 'E':
		s.cur.x, s.cur.wrap = 0, false
		s.index()
	case 'H':
		s.tabs[s.cur.x] = true
	case 'M':
		s.cur.wrap = false
		s.reverseIndex()
	case 'c':
		s.reset()
	}
}

// align fills the screen with E.
func (s *Screen) align() {
	s.top, s.bottom = 0, s.rows-1
	s.cur.x, s.cur.y, s.cur.wrap = 0, 0, false
	for y := range s.rows {
		fill(s.row(y), cell{r: 'E', width: 1})
	}
}

func (s *Screen) save() { s.buf().saved = s.cur }

func (s *Screen) restore() {
	s.cur = s.buf().saved
	lo, hi := 0, s.rows-1
	if s.cur.origin {
		lo, hi = s.top, s.bottom
	}
	s.cur.x, s.cur.y = clamp(s.cur.x, 0, s.cols-1), clamp(s.cur.y, lo, hi)
}

// move sets the cursor's row and column; in origin mode rows count from the
// upper margin.
func (s *Screen) move(x, y int) {
	lo, hi := 0, s.rows-1
	if s.cur.origin {
		lo, hi = s.top, s.bottom
		y += s.top
	}
	s.cur.x, s.cur.y, s.cur.wrap = clamp(x, 0, s.cols-1), clamp(y, lo, hi), false
}

// lineNo returns the cursor's row as the program counts it.
func (s *Screen) lineNo() int {
	if s.cur.origin {
		return s.cur.y - s.top
	}
	return s.cur.y
}

func (s *Screen) doCSI(b byte) {
	p := &s.parser
	switch {
	case p.private == '?' && len(p.inter) == 0:
		s.doPrivate(b)
		return
	case p.private != 0:
		s.doKeyboard(b)
		return
	case len(p.inter) == 1 && p.inter[0] == ' ' && b == 'q':
		s.shape = s.raw(0, 0)
		return
	case len(p.inter) == 1 && p.inter[0] == '!' && b == 'p':
		s.softReset()
		return
	case len(p.inter) > 0:
		return
	}
	switch b {
	case '@':
		s.cur.wrap = false
		s.insertCells(s.arg(0, 1))
	case 'A':
		s.up(s.arg(0, 1))
	case 'B', 'e':
		s.down(s.arg(0, 1))
	case 'C', 'a':
		s.cur.x, s.cur.wrap = min(s.cols-1, s.cur.x+s.arg(0, 1)), false
	case 'D':
		s.cur.x, s.cur.wrap = max(0, s.cur.x-s.arg(0, 1)), false
	case 'E':
		s.cur.x = 0
		s.down(s.arg(0, 1))
	case 'F':
		s.cur.x = 0
		s.up(s.arg(0, 1))
	case 'G', '`':
		s.cur.x, s.cur.wrap = clamp(s.arg(0, 1)-1, 0, s.cols-1), false
	case 'H', 'f':
		s.move(s.arg(1, 1)-1, s.arg(0, 1)-1)
	case 'I':
		s.tab(min(s.arg(0, 1), s.cols))
	case 'J':
		s.eraseDisplay(s.raw(0, 0))
	case 'K':
		s.eraseLine(s.raw(0, 0))
	case 'L':
		if s.cur.y >= s.top && s.cur.y <= s.bottom {
			s.scrollDown(s.cur.y, s.arg(0, 1))
			s.cur.x, s.cur.wrap = 0, false
		}
	case 'M':
		if s.cur.y >= s.top && s.cur.y <= s.bottom {
			s.deleteLines(s.arg(0, 1))
			s.cur.x, s.cur.wrap = 0, false
		}
	case 'P':
		s.cur.wrap = false
		s.deleteCells(s.arg(0, 1))
	case 'S':
		s.scrollUp(s.top, s.arg(0, 1))
	case 'T':
		if len(p.params) <= 1 {
			s.scrollDown(s.top, s.arg(0, 1))
		}
	case 'X':
		s.cur.wrap = false
		s.erase(s.cur.y, s.cur.x, s.cur.x+s.arg(0, 1))
	case 'Z':
		for range min(s.arg(0, 1), s.cols) {
			for s.cur.x > 0 {
				s.cur.x--
				if s.tabs[s.cur.x] {
					break
				}
			}
		}
	case 'b':
		if s.last != 0 {
			for range min(s.arg(0, 1), s.cols) {
				s.put(s.last)
			}
		}
	case 'd':
		s.move(s.cur.x, s.arg(0, 1)-1)
	case 'g':
		switch s.raw(0, 0) {
		case 0:
			s.tabs[s.cur.x] = false
		case 3:
			clear(s.tabs)
		}
	case 'h', 'l':
		for i := range p.params {
			switch s.raw(i, 0) {
			case 4:
				s.insert = b == 'h'
			case 20:
				s.newline = b == 'h'
			}
		}
	case 'm':
		s.cur.pen = sgr(s.cur.pen, p.params)
	case 'r':
		top, bottom := s.arg(0, 1)-1, min(s.arg(1, s.rows), s.rows)-1
		if top < bottom {
			s.top, s.bottom = top, bottom
			s.move(0, 0)
		}
	case 's':
		s.save()
	case 'u':
		s.restore()
	}
}

func (s *Screen) up(n int) {
	lo := 0
	if s.cur.y >= s.top {
		lo = s.top
	}
	s.cur.y, s.cur.wrap = max(lo, s.cur.y-n), false
}

func (s *Screen) down(n int) {
	hi := s.rows - 1
	if s.cur.y <= s.bottom {
		hi = s.bottom
	}
	s.cur.y, s.cur.wrap = min(hi, s.cur.y+n), false
}

// deleteLines scrolls without adding to the history, because the lines were
// deleted.
func (s *Screen) deleteLines(n int) {
	keep := s.history.max
	s.history.max = 0
	s.scrollUp(s.cur.y, n)
	s.history.max = keep
}

func (s *Screen) eraseDisplay(how int) {
	switch how {
	case 0:
		s.eraseLine(0)
		for y := s.cur.y + 1; y < s.rows; y++ {
			s.erase(y, 0, s.cols)
		}
	case 1:
		for y := range s.cur.y {
			s.erase(y, 0, s.cols)
		}
		s.eraseLine(1)
	case 2:
		for y := range s.rows {
			s.erase(y, 0, s.cols)
		}
	case 3:
		s.history.clear()
	}
	s.cur.wrap = false
}

func (s *Screen) eraseLine(how int) {
	switch how {
	case 0:
		s.erase(s.cur.y, s.cur.x, s.cols)
	case 1:
		s.erase(s.cur.y, 0, s.cur.x+1)
	case 2:
		s.erase(s.cur.y, 0, s.cols)
	}
	s.cur.wrap = false
}

func (s *Screen) softReset() {
	s.insert, s.newline, s.keypad = false, false, false
	for _, m := range []int{modeNoWrap, modeHidden, 1} {
		delete(s.modes, m)
	}
	s.top, s.bottom = 0, s.rows-1
	s.cur.pen, s.cur.origin, s.cur.wrap = style{}, false, false
	s.cur.charset, s.cur.shift = [2]byte{}, 0
	s.buf().saved = cursor{}
}

func (s *Screen) doPrivate(b byte) {
	p := &s.parser
	switch b {
	case 'h', 'l':
		for i := range p.params {
			s.setMode(s.raw(i, 0), b == 'h')
		}
	case 'J':
		s.eraseDisplay(s.raw(0, 0))
	case 'K':
		s.eraseLine(s.raw(0, 0))
	}
}

// restorable lists the modes to set in a client's terminal, besides those that
// Screen handles itself.
var restorable = []int{
	1, 5, 9, 12, 45, 66, 67, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016,
	1035, 1036, 1039, 1042, modePaste, 2031, 2048,
}

func (s *Screen) setMode(m int, on bool) {
	switch m {
	case modeOrigin:
		s.cur.origin = on
		s.move(0, 0)
	case modeWrap:
		s.differ(modeNoWrap, !on)
		if !on {
			s.cur.wrap = false
		}
	case modeCursor:
		s.differ(modeHidden, !on)
	case modeAlt47, modeAlt1047:
		if on {
			s.enterAlt()
		} else {
			s.leaveAlt()
		}
	case modeSave1048:
		if on {
			s.save()
		} else {
			s.restore()
		}
	case modeAlt1049:
		if on {
			s.save()
			s.leaveAlt() // a second time it is blank again
			s.enterAlt()
		} else {
			s.leaveAlt()
			s.restore()
		}
	case 1000, 1002, 1003, 9:
		for _, o := range []int{1000, 1002, 1003, 9} { // only one of them at a time
			delete(s.modes, o)
		}
		s.differ(m, on)
	default:
		for _, k := range restorable {
			if k == m {
				s.differ(m, on)
			}
		}
	}
}

func (s *Screen) differ(m int, on bool) {
	if on {
		s.modes[m] = true
	} else {
		delete(s.modes, m)
	}
}

// doKeyboard tracks the keyboard protocols: kitty's stack of flags and xterm's
// key resources.
func (s *Screen) doKeyboard(b byte) {
	p := &s.parser
	if len(p.inter) > 0 {
		return
	}
	switch {
	case b == 'u' && p.private == '>':
		if len(s.kitty) < 16 {
			s.kitty = append(s.kitty, s.raw(0, 0))
		}
	case b == 'u' && p.private == '<':
		s.kitty = s.kitty[:max(0, len(s.kitty)-s.arg(0, 1))]
	case b == 'u' && p.private == '=':
		if len(s.kitty) == 0 {
			s.kitty = []int{0}
		}
		f := &s.kitty[len(s.kitty)-1]
		switch s.arg(1, 1) {
		case 1:
			*f = s.raw(0, 0)
		case 2:
			*f |= s.raw(0, 0)
		case 3:
			*f &^= s.raw(0, 0)
		}
	case b == 'n' && p.private == '>':
		delete(s.xtkeys, s.raw(0, 2))
	case b == 'm' && p.private == '>':
		if len(p.params) == 0 {
			s.xtkeys = nil
			return
		}
		k := s.raw(0, 0)
		if k > 8 {
			return
		}
		if s.xtkeys == nil {
			s.xtkeys = map[int]int{}
		}
		delete(s.xtkeys, k)
		if v := s.raw(1, 0); v != 0 {
			s.xtkeys[k] = v
		}
	}
}

func (s *Screen) doOSC() {
	num, rest, ok := bytes.Cut(s.parser.str, []byte{';'})
	if !ok {
		return
	}
	if n := string(num); n == "0" || n == "2" {
		s.title = strings.Map(func(r rune) rune {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				return -1
			}
			return r
		}, strings.ToValidUTF8(string(rest), "\uFFFD"))
	}
}

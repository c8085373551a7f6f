package vt

import (
	"bytes"
	"fmt"
	"strconv"
)

// Answer returns this terminal's answer to a piece that Scanner found to be a
// Query, which has not been written to it; nil if it has none (the program then
// continues after a time limit of its own, as on any limited terminal).
func (s *Screen) Answer(query []byte) []byte {
	if len(query) < 2 || query[0] != 0x1b {
		return nil
	}
	switch query[1] {
	case 'Z':
		return []byte("\x1b[?62;22c")
	case '[':
		return s.answerCSI(query[2:len(query)-1], query[len(query)-1])
	case ']':
		body := bytes.TrimRight(query[2:], "\x07\x1b\\")
		switch string(body) { // the program wants to know whether the background is dark or light
		case "10;?":
			return []byte("\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\")
		case "11;?":
			return []byte("\x1b]11;rgb:0000/0000/0000\x1b\\")
		}
	case 'P': // neither settings nor capabilities are reported
		if bytes.HasPrefix(query[2:], []byte("$q")) {
			return []byte("\x1bP0$r\x1b\\")
		}
		return []byte("\x1bP0+r\x1b\\")
	}
	return nil
}

func (s *Screen) answerCSI(params []byte, final byte) []byte {
	ps := string(params)
	switch final {
	case 'c':
		switch ps {
		case "", "0":
			return []byte("\x1b[?62;22c") // a VT220 with colours
		case ">", ">0":
			return []byte("\x1b[>1;10;0c")
		}
	case 'n':
		switch ps {
		case "5":
			return []byte("\x1b[0n")
		case "6":
			return fmt.Appendf(nil, "\x1b[%d;%dR", s.lineNo()+1, s.cur.x+1)
		case "?6":
			return fmt.Appendf(nil, "\x1b[?%d;%dR", s.lineNo()+1, s.cur.x+1)
		}
	case 'p':
		if rest, ok := bytes.CutSuffix(params, []byte{'$'}); ok && bytes.HasPrefix(rest, []byte{'?'}) {
			m, err := strconv.Atoi(string(rest[1:]))
			if err != nil {
				return nil
			}
			return fmt.Appendf(nil, "\x1b[?%d;%d$y", m, s.modeState(m))
		}
	case 'q':
		return []byte("\x1bP>|teamctl\x1b\\")
	case 'u':
		f := 0
		if len(s.kitty) > 0 {
			f = s.kitty[len(s.kitty)-1]
		}
		return fmt.Appendf(nil, "\x1b[?%du", f)
	case 't':
		switch ps {
		case "18":
			return fmt.Appendf(nil, "\x1b[8;%d;%dt", s.rows, s.cols)
		case "19":
			return fmt.Appendf(nil, "\x1b[9;%d;%dt", s.rows, s.cols)
		}
	}
	return nil
}

// modeState returns the state for DECRPM: 0 unknown, 1 set, 2 reset.
func (s *Screen) modeState(m int) int {
	on := func(b bool) int {
		if b {
			return 1
		}
		return 2
	}
	switch m {
	case modeOrigin:
		return on(s.cur.origin)
	case modeWrap:
		return on(!s.modes[modeNoWrap])
	case modeCursor:
		return on(!s.modes[modeHidden])
	case modeAlt47, modeAlt1047, modeAlt1049:
		return on(s.onAlt)
	}
	for _, k := range restorable {
		if k == m {
			return on(s.modes[m])
		}
	}
	return 0
}

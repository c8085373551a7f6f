package vt

import "bytes"

// Kind is the kind of a piece of a stream.
type Kind int

// Kinds of pieces.
const (
	Plain Kind = iota
	Query      // a query: the terminal answers as if the answer were typed
	Enter      // switches to the alternate screen
	Leave      // switches to the primary screen
)

// holdMax limits how much of an unfinished sequence Scanner holds back. Every
// query is shorter.
const holdMax = 96

// Scanner splits a stream at the sequences that matter to a program that
// forwards it. Its zero value is at the beginning of a stream.
type Scanner struct {
	held  []byte // an unfinished sequence, at most holdMax
	state scanState
}

type scanState int

const (
	between scanState = iota
	long              // in a string that is too long to hold back: until its end
	longESC           // the same, after an ESC
	longCSI           // in a CSI: until its final byte
)

// Scan calls f with the pieces of p in order. A sequence that is incomplete at
// the end of p is passed with the next call.
func (s *Scanner) Scan(p []byte, f func(k Kind, piece []byte)) {
	if len(s.held) > 0 {
		p = append(s.held, p...)
		s.held = nil
	}
	from := 0 // start of the plain piece
	flush := func(to int) {
		if to > from {
			f(Plain, p[from:to])
		}
	}
	for i := 0; i < len(p); {
		switch s.state {
		case long, longESC, longCSI:
			i = s.skip(p, i)
			continue
		case between:
		}
		j := bytes.IndexByte(p[i:], 0x1b)
		if j < 0 {
			break
		}
		i += j
		n, kind, done := sequence(p[i:])
		if !done {
			if len(p)-i <= holdMax {
				flush(i)
				s.held = bytes.Clone(p[i:])
				return
			}
			s.state = long
			if p[i+1] == '[' {
				s.state = longCSI
			}
			i += 2
			continue
		}
		if kind != Plain {
			flush(i)
			f(kind, p[i:i+n])
			from = i + n
		}
		i += n
	}
	flush(len(p))
}

// Flush returns the held part of an unfinished sequence.
func (s *Scanner) Flush() []byte {
	b := s.held
	s.held = nil
	return b
}

// skip returns the index of the end of a long sequence, or of p.
func (s *Scanner) skip(p []byte, i int) int {
	for ; i < len(p); i++ {
		b := p[i]
		switch {
		case s.state == longCSI:
			if b >= 0x40 || b == 0x1b {
				s.state = between
				if b == 0x1b {
					return i
				}
				return i + 1
			}
		case s.state == longESC:
			if b != '\\' { // an ESC ends the string, whatever follows
				s.state = between
				return i
			}
			s.state = between
			return i + 1
		case b == 0x07, b == 0x18, b == 0x1a:
			s.state = between
			return i + 1
		case b == 0x1b:
			s.state = longESC
		}
	}
	return i
}

// sequence returns the length and kind of the sequence at the start of p, which
// is an ESC.
func sequence(p []byte) (n int, k Kind, done bool) {
	if len(p) < 2 {
		return 0, Plain, false
	}
	switch p[1] {
	case 0x1b:
		return 1, Plain, true
	case '[':
		for i := 2; i < len(p); i++ {
			b := p[i]
			switch {
			case b >= 0x40 && b < 0x7f:
				return i + 1, csiKind(p[2:i], b), true
			case b == 0x1b || b == 0x18 || b == 0x1a:
				return i, Plain, true // aborted
			}
		}
		return 0, Plain, false
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < len(p); i++ {
			switch p[i] {
			case 0x07:
				if p[1] == ']' {
					return i + 1, stringKind(p[1], p[2:i]), true
				}
			case 0x18, 0x1a:
				return i, Plain, true
			case 0x1b:
				if i+1 == len(p) {
					return 0, Plain, false
				}
				if p[i+1] == '\\' {
					return i + 2, stringKind(p[1], p[2:i]), true
				}
				return i, Plain, true
			}
		}
		return 0, Plain, false
	case 'Z': // DECID
		return 2, Query, true
	}
	return 2, Plain, true // what may follow an intermediate is treated as plain text
}

func csiKind(params []byte, final byte) Kind {
	switch final {
	case 'c', 'n':
		// "CSI ? n" and "CSI > n" set something.
		if len(params) > 0 && params[0] == '>' && final == 'n' {
			return Plain
		}
		return Query
	case 'p':
		if bytes.HasSuffix(params, []byte{'$'}) {
			return Query
		}
	case 'q':
		if len(params) > 0 && params[0] == '>' {
			return Query
		}
	case 'u':
		if len(params) > 0 && params[0] == '?' {
			return Query
		}
	case 'x':
		if bytes.IndexByte(params, '$') < 0 {
			return Query
		}
	case 't':
		n, _, _ := bytes.Cut(params, []byte{';'})
		switch string(n) {
		case "11", "13", "14", "15", "16", "18", "19", "20", "21":
			return Query
		}
	case 'm':
		if len(params) > 0 && params[0] == '?' {
			return Query
		}
	case 'S':
		if len(params) > 0 && params[0] == '?' {
			return Query
		}
	case 'h', 'l':
		if len(params) == 0 || params[0] != '?' {
			return Plain
		}
		for p := range bytes.SplitSeq(params[1:], []byte{';'}) {
			switch string(p) {
			case "47", "1047", "1049":
				if final == 'h' {
					return Enter
				}
				return Leave
			}
		}
	}
	return Plain
}

func stringKind(intro byte, body []byte) Kind {
	switch intro {
	case ']':
		num, rest, ok := bytes.Cut(body, []byte{';'})
		if !ok {
			return Plain
		}
		switch string(num) {
		case "4", "5", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "52", "60", "61", "21":
			if bytes.HasSuffix(rest, []byte{'?'}) {
				return Query
			}
		}
	case 'P':
		if bytes.HasPrefix(body, []byte("$q")) || bytes.HasPrefix(body, []byte("+q")) {
			return Query
		}
	case '_':
		// kitty's graphics: "a=q" is a query.
		if bytes.HasPrefix(body, []byte{'G'}) && bytes.Contains(body, []byte("a=q")) {
			return Query
		}
	}
	return Plain
}

// Package plain makes text from elsewhere harmless: output of programs, names, messages
// and files may contain what drives a terminal or changes the order in which it shows
// characters. Line and Text drop escape sequences as a whole; Clean keeps every character
// that is shown; Visible shows those that are not.
package plain

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi/parser"
)

// Line returns s as one line, without escape sequences, control characters and
// bidirectional formatting. Line breaks and tabs become spaces.
func Line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, withoutSequences(s))
	return strings.TrimSpace(s)
}

// Text returns the output of a program as text: without escape sequences, control
// characters except newline and tab, and bidirectional overrides. Of a line that was
// redrawn with carriage returns, such as a progress bar, the last state is kept.
func Text(s string) string {
	lines := strings.Split(withoutSequences(s), "\n")
	for i, l := range lines {
		l = strings.TrimRight(l, "\r")
		if j := strings.LastIndexByte(l, '\r'); j >= 0 {
			l = l[j+1:]
		}
		lines[i] = Clean(l)
	}
	return strings.Join(lines, "\n")
}

// Clean drops the control characters C0 (except newline and tab), DEL and C1, which drive
// terminals, and the bidirectional overrides, which change the displayed order of text.
// It drops single characters only, so it also works on text that arrives in pieces, and an
// unfinished escape sequence hides nothing after it. CR and CR LF become newlines. An
// invalid byte becomes U+FFFD.
func Clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r), overrides(r):
			return -1
		}
		return r
	}, s)
}

// overrides reports whether a character changes the order of those that follow it. The
// marks that right-to-left text needs affect only their neighbours.
func overrides(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Visible returns s as one line in which every character can be seen: those that a
// terminal obeys or does not show, such as control, bidirectional and zero-width
// characters, are written as in a Go string. A person who is asked about a command sees
// all of it.
func Visible(s string) string {
	var b strings.Builder
	rs := []rune(s)
	for i, r := range rs {
		if r == '\t' || !hidden(rs, i) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// hidden reports whether a terminal does not show a character as it is. Joiners between
// characters that are not ASCII are part of how these are written.
func hidden(rs []rune, i int) bool {
	r := rs[i]
	switch {
	case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp), r == unicode.ReplacementChar:
		return true
	case r == '\u200c' || r == '\u200d':
		return i == 0 || i == len(rs)-1 || rs[i-1] <= unicode.MaxLatin1 || rs[i+1] <= unicode.MaxLatin1
	}
	return unicode.Is(unicode.Cf, r) || r == '\u3164' || r == '\uffa0' || r == '\u115f' || r == '\u1160' || r == '\u2800'
}

// withoutSequences drops escape sequences and keeps every other character, control
// characters included. A newline ends any sequence: one that was never finished would
// otherwise hide the rest of the text. ansi.Strip does not do that, and its package costs
// every shim a fifth of a millisecond and 30 KB at its start.
func withoutSequences(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsRune(s, '\x1b') {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	state := parser.GroundState
	for _, r := range s {
		inString := state == parser.OscStringState || state == parser.DcsStringState || state == parser.SosStringState ||
			state == parser.PmStringState || state == parser.ApcStringState
		switch {
		case r == '\n', r == '\u009c' && inString: // U+009C is the string terminator
			state = parser.GroundState
			b.WriteRune(r)
		case r == '\a' && inString: // a widespread end of all kinds of strings
			state = parser.GroundState
		case r >= 0x80 && inString:
		case r >= 0x80:
			state = parser.GroundState
			b.WriteRune(r)
		default:
			next, action := parser.Table.Transition(state, byte(r))
			if action == parser.PrintAction || action == parser.ExecuteAction {
				b.WriteRune(r)
			}
			state = next
		}
	}
	return b.String()
}

// Marks returns the length of the combining characters at the beginning of s, in bytes. They belong to
// the character before them and take no cell.
func Marks(s string) int {
	n := 0
	for n < len(s) && s[n] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s[n:])
		if !unicode.In(r, unicode.Mn, unicode.Me) {
			break
		}
		n += size
	}
	return n
}

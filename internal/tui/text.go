package tui

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes one harmless line of a text from elsewhere: escape sequences and
// control and bidi characters go, line breaks and tabs become spaces.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, ansi.Strip(s))
	return strings.TrimSpace(s)
}

// Escape makes one line of a text from elsewhere in which everything can be seen: what a
// terminal would obey or not show, control, bidi and zero-width characters, stands there
// as in a string of Go. A person who is asked about a command sees all of it.
func Escape(s string) string {
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

// Duration is a span for people: 0.4s, 12s, 3m05s, 2h10m, 4d3h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Elapsed is a span that is still growing, in whole seconds: it must not jitter.
func Elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	}
	return Duration(d)
}

// Pad fits s, which may be coloured, to exactly width cells.
func Pad(s string, width int) string {
	if width <= 0 {
		return ""
	}
	s = Cut(s, width)
	return s + strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
}

// Cut shortens s to at most width cells; what was cut shows as "…".
func Cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}

// Width is the number of cells that s takes.
func Width(s string) int { return ansi.StringWidth(s) }

// Style colours text, or does nothing when it is off.
type Style struct {
	On bool

	key string // what its sequences begin with, see NewStyle
}

func (s Style) sgr(code, text string) string {
	if !s.On || text == "" {
		return text
	}
	return "\x1b[" + s.key + code + "m" + text + "\x1b[" + s.key + "0m"
}

// NewStyle is a style whose sequences Show can tell from those in a text from elsewhere:
// they begin with a random parameter, which Show takes out again.
func NewStyle(on bool) Style {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return Style{On: on, key: strconv.FormatUint(binary.BigEndian.Uint64(b[:]), 10) + ";"}
}

// Show makes every character of a text visible, as Escape does, but for line breaks and
// the sequences of this style.
func (s Style) Show(text string) string {
	if s.key == "" || !s.On || !strings.Contains(text, "\x1b["+s.key) {
		return escapeLines(text)
	}
	var b strings.Builder
	for i, part := range strings.Split(text, "\x1b["+s.key) {
		if i > 0 {
			code, rest, ok := strings.Cut(part, "m")
			if !ok || strings.Trim(code, "0123456789;") != "" {
				continue // cut by the width of the terminal
			}
			b.WriteString("\x1b[" + code + "m")
			part = rest
		}
		b.WriteString(escapeLines(part))
	}
	return b.String()
}

func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = Escape(l)
	}
	return strings.Join(lines, "\n")
}

// Bold, Dim, Red, Green, Yellow and Cyan are what their names say.
func (s Style) Bold(t string) string { return s.sgr("1", t) }

// Dim is for what matters less.
func (s Style) Dim(t string) string { return s.sgr("2", t) }

// Red is for failures.
func (s Style) Red(t string) string { return s.sgr("31", t) }

// Green is for what is done.
func (s Style) Green(t string) string { return s.sgr("32", t) }

// Yellow is for what needs a look.
func (s Style) Yellow(t string) string { return s.sgr("33", t) }

// Cyan is for what is in work.
func (s Style) Cyan(t string) string { return s.sgr("36", t) }

var memberColors = map[string]string{
	"blue": "34", "green": "32", "yellow": "33", "purple": "35",
	"orange": "38;5;208", "pink": "38;5;213", "cyan": "36", "red": "31",
}

// Member colours a member's name in its colour, one of team.Colors.
func (s Style) Member(color, name string) string {
	code, ok := memberColors[color]
	if !ok {
		return name
	}
	return s.sgr(code, name)
}

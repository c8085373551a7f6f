package view

import (
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

// Plain takes the terminal out of a program's output: escape sequences and
// control characters go, and of a line that was drawn over again and again (a
// progress bar) the last state stays.
func Plain(s string) string {
	s = strings.ReplaceAll(ansi.Strip(s), "\r\n", "\n")
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		l = strings.TrimRight(l, "\r")
		if j := strings.LastIndexByte(l, '\r'); j >= 0 {
			l = l[j+1:]
		}
		lines[i] = strings.Map(func(r rune) rune {
			if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 {
				return -1
			}
			return r
		}, l)
	}
	return strings.Join(lines, "\n")
}

// Age is how long ago something was, for people: 40s, 5m, 2h, 3d. From a minute on it
// changes once a minute at most, so that what shows it can rest in between.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// AgeChanges returns how long an Age stays as it is.
func AgeChanges(d time.Duration) time.Duration {
	unit := 24 * time.Hour
	switch {
	case d < time.Minute:
		unit = time.Second
	case d < time.Hour:
		unit = time.Minute
	case d < 24*time.Hour:
		unit = time.Hour
	}
	return unit - max(0, d)%unit
}

package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/teamctl/teamctl/internal/plain"
)

// Clean is plain.Line, applied to everything that screens show.
func Clean(s string) string { return plain.Line(s) }

// Duration formats a duration: 0.4s, 12s, 3m05s, 2h10m, 4d3h.
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

// Elapsed formats a growing duration in whole seconds, so that it does not jitter.
func Elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	}
	return Duration(d)
}

// Pad pads or cuts s, which may be coloured, to exactly width cells.
func Pad(s string, width int) string {
	if width <= 0 {
		return ""
	}
	s = Cut(s, width)
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}

// Cut shortens s to at most width cells; what was cut shows as "…".
func Cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if len(s) <= width { // a cell takes a byte or more
		return s
	}
	if w, ok := plainWidth(s); ok && w <= width {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

// Width returns the width of s in cells.
func Width(s string) int {
	if w, ok := plainWidth(s); ok {
		return w
	}
	return ansi.StringWidth(s)
}

// plainWidth returns the width of a text of printable ASCII, colours, and the signs and frames that
// screens draw, which most lines are: no character joins another, and each takes a cell. To take such a
// text apart into clusters was half of the work of a frame.
func plainWidth(s string) (w int, ok bool) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c >= 0x20 && c < 0x7f:
			i++
		case c == 0x1b:
			n := 2
			for i+n < len(s) && (s[i+n] >= '0' && s[i+n] <= '9' || s[i+n] == ';') {
				n++
			}
			if i+n >= len(s) || s[i+1] != '[' || s[i+n] != 'm' {
				return 0, false
			}
			i += n + 1
			continue
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if (r < 0x2500 || r > 0x259f) && !strings.ContainsRune("·…›▸◌✓✗↑↓−–", r) {
				return 0, false
			}
			i += n
		}
		w++
	}
	return w, true
}

// printable reports whether s has only printable characters of ASCII, as most lines have, which need
// not be taken apart.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// Age formats the time since an event: 40s, 5m, 2h, 3d. From a minute on it changes at most once a
// minute, so that a screen can rest in between.
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

// AgeChanges returns how long an Age stays unchanged. That of a time to come, which is one from before the clock
// was set back, stays so until then; but at most a minute, since the clock may be set again.
func AgeChanges(d time.Duration) time.Duration {
	unit := 24 * time.Hour
	switch {
	case d < 0:
		return min(time.Second-d, time.Minute)
	case d < time.Minute:
		unit = time.Second
	case d < time.Hour:
		unit = time.Minute
	case d < 24*time.Hour:
		unit = time.Hour
	}
	return unit - d%unit
}

// Amount formats a number: 812, 12.4k, 1.2M.
func Amount(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// Words returns the number of tokens in words, "-" if unknown.
func (s Spent) Words() string {
	if !s.Known {
		return "-"
	}
	return Amount(s.Tokens)
}

// Colors makes one harmless line of a program's output that keeps its colours (SGR): it removes
// all other sequences and control characters.
func Colors(s string) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	var state byte
	for s != "" {
		seq, width, n, next := ansi.DecodeSequence(s, state, nil)
		state, s = next, s[n:]
		switch {
		case width > 0:
			h := harmless(seq)
			if _, width, _, _ = ansi.DecodeSequence(h, 0, nil); h == seq || width > 0 { // what is left may be a joiner of nothing
				b.WriteString(h)
				marks := s[:plain.Marks(s)]
				b.WriteString(marks)
				s = s[len(marks):]
			}
		case isSGR(seq):
			b.WriteString(seq)
		case seq == "\t":
			b.WriteString("    ")
		}
	}
	return b.String()
}

// harmless is Clean for a part of a line, whose spaces are kept.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, s)
}

// isSGR reports whether a sequence only sets colours.
func isSGR(s string) bool {
	return len(s) >= 3 && s[:2] == "\x1b[" && s[len(s)-1] == 'm' && strings.Trim(s[2:len(s)-1], "0123456789;:") == ""
}

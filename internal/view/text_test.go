package view

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]string{
		-time.Second:            "0s",
		1240 * time.Millisecond: "1.2s",
		12 * time.Second:        "12s",
		185 * time.Second:       "3m05s",
		130 * time.Minute:       "2h10m",
		100 * time.Hour:         "4d4h",
	} {
		if got := Duration(in); got != want {
			t.Errorf("Duration(%v) = %q, want %q", in, got, want)
		}
	}
	if got := Elapsed(1900 * time.Millisecond); got != "1s" {
		t.Errorf("Elapsed(1.9s) = %q, want whole seconds", got)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m", 119 * time.Minute: "1h", 50 * time.Hour: "2d",
	} {
		if got := Age(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
		next := AgeChanges(d)
		if next <= 0 || Age(d+next-time.Nanosecond) != Age(max(0, d)) || Age(max(0, d)+next) == Age(max(0, d)) {
			t.Errorf("%v: changes after %v", d, next)
		}
	}
}

// FuzzColors checks that a line has text and colours only, which are left alone, and that lines have the same width by
// every way.
func FuzzColors(f *testing.F) {
	for _, s := range []string{"text", "\x1b[31mred\x1b[0m", "数据 \x1b[2J\x1b]0;t\x07x", "\u009b31mx\ty", "e\u0301\u202e", "👩\u200d🚀", "\x1b[38;2;1;2;3mx\x1b["} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		l := Colors(s)
		if again := Colors(l); again != l {
			t.Fatalf("%q: %q, then %q", s, l, again)
		}
		for rest := l; ; {
			at := strings.IndexFunc(rest, unicode.IsControl)
			if at < 0 {
				break
			}
			end := strings.IndexByte(rest[at:], 'm') + at
			if end < at || !isSGR(rest[at:end+1]) {
				t.Fatalf("%q: %q is not only text and colours", s, l)
			}
			rest = rest[end+1:]
		}
		if got, want := Width(l), ansi.StringWidth(l); got != want {
			t.Fatalf("%q: width %d, want %d", l, got, want)
		}
		if width = width & 0xff; width > 0 {
			if got, want := Cut(l, width), ansi.Truncate(l, width, "…"); got != want {
				t.Fatalf("%q cut to %d: %q, want %q", l, width, got, want)
			}
		}
	})
}

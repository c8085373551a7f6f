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
	if next := AgeChanges(-time.Hour); next != time.Minute {
		t.Errorf("an hour ahead: drawn again after %v", next)
	}
}

// TestPlainWidth checks that a text which is measured at once has the width that it has by its clusters.
func TestPlainWidth(t *testing.T) {
	t.Parallel()
	signs := "a ~│─└█░·…›▸◌✓✗↑↓−–"
	for _, r := range signs {
		if w, ok := plainWidth(string(r)); !ok || w != 1 || ansi.StringWidth(string(r)) != 1 {
			t.Errorf("%q: %d, %v, by its clusters %d", r, w, ok, ansi.StringWidth(string(r)))
		}
	}
	for r := rune(0x2500); r <= 0x259f; r++ {
		if ansi.StringWidth(string(r)) != 1 {
			t.Errorf("%q takes %d cells", r, ansi.StringWidth(string(r)))
		}
	}
	colored := "\x1b[1;38;5;3m" + signs + "\x1b[m"
	if w, ok := plainWidth(colored); !ok || w != ansi.StringWidth(colored) || Cut(colored, w) != colored {
		t.Errorf("%d, %v", w, ok)
	}
	for _, s := range []string{"数", "e\u0301", "│\u0301", "✓\ufe0f", "\x1b", "\x1b[", "\x1b[2", "\x1b[2J", "\x1b]m", "\t", "\x7f", "\xff", "\u009b1m", "\u200d"} {
		if w, ok := plainWidth(s); ok {
			t.Errorf("%q is measured at once: %d", s, w)
		}
		if Width(s) != ansi.StringWidth(s) {
			t.Errorf("%q: %d", s, Width(s))
		}
	}
}

// FuzzColors checks that a line has text and colours only, which are left alone, and that lines have the same width by
// every way.
func FuzzColors(f *testing.F) {
	for _, s := range []string{"text", "\x1b[31mred\x1b[0m", "数据 \x1b[2J\x1b]0;t\x07x", "\u009b31mx\ty", "e\u0301\u202e", "👩\u200d🚀", "\x1b[38;2;1;2;3mx\x1b[", "\xdb\u06e0\xea0"} {
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

// TestColorsKeepsMarks checks that the lines of a member's screen keep combining characters, and none that has nothing
// to combine with.
func TestColorsKeepsMarks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\x1b[31me\u0301cole\x1b[m": "\x1b[31me\u0301cole\x1b[m", "o\u0302\u0323数": "o\u0302\u0323数", "\u0301a": "a", "a\x1b[m\u0301": "a\x1b[m", "a\x07\u0301": "a",
	} {
		if got := Colors(in); got != want || Width(got) != Width(want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzClean checks that what agents write cannot drive a terminal (move the cursor, set the title or
// the clipboard) or reorder text, and takes the cells that it is measured to take.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"text", "a\x1b[2Jb", "\x1b]0;title\x07x", "\x1b]52;c;eA==\x1b\\x", "\u009b31mx", "a\r\nb\tc", "e\u0301\u202ex\u2066", "\xff\x9b2J", "\x1bP1$r\x1b\\", "数据 👩\u200d🚀"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l := Clean(s)
		for _, r := range l {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
				t.Fatalf("%q: %q has %U", s, l, r)
			}
		}
		if again := Clean(l); again != l {
			t.Fatalf("%q: %q, then %q", s, l, again)
		}
		if got, want := Width(l), ansi.StringWidth(l); got != want {
			t.Fatalf("%q: width %d, want %d", l, got, want)
		}
	})
}

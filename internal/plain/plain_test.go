package plain

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

// each compares a function with what it returns for some texts.
func each(t *testing.T, f func(string) string, texts map[string]string) {
	t.Helper()
	t.Parallel()
	for in, want := range texts {
		if got := f(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	each(t, Line, map[string]string{
		"plain":                             "plain",
		"two\nlines\tand a tab":             "two lines and a tab",
		"\x1b[31mred\x1b[0m":                "red",
		"\x1b]0;title\x07text":              "text",
		"bell\x07 and c1 \u009b2J":          "bell and c1 2J",
		"right \u202eto left":               "right to left",
		"umlaut ü, 数据, emoji 🙂":             "umlaut ü, 数据, emoji 🙂",
		"a bad byte \xff":                   "a bad byte",
		"  room  ":                          "room",
		"carriage\rreturn":                  "carriage return",
		"\x1bP1;2|payload\x1b\\dcs":         "dcs",
		"cursor \x1b[10;10H moves":          "cursor  moves",
		"nothing but \x1b[0m escapes \x1b[": "nothing but  escapes",
	})
}

func TestText(t *testing.T) {
	each(t, Text, map[string]string{
		"plain\ttext\n":                     "plain\ttext\n",
		"\x1b[1;31mred\x1b[0m":              "red",
		"\x1b[32mgreen\x1b[0m\r\n":          "green\n",
		"10%\r50%\r100%\r\ndone\n":          "100%\ndone\n",
		"kept\n10%\rx":                      "kept\nx",
		"\x1b]0;title\x07after":             "after",
		"\x1b]0;title ü\u009cafter":         "after",
		"\x1b]8;;http://x\x1b\\link":        "link",
		"\x1b]never closed\nnext":           "\nnext",
		"\x1b[12\nnext":                     "\nnext",
		"a\x00b\x07c\u009bd\x7fe":           "abcde",
		"ü\u0085x\n":                        "üx\n",
		"bad \xff utf8 \x9b1m":              "bad \ufffd utf8 \ufffd1m",
		"\x1b(Bascii":                       "ascii",
		"end in escape \x1b":                "end in escape ",
		"end in sequence \x1b[12;":          "end in sequence ",
		"\x1bP1$r string \x1b\\ü \x1b=x":    "ü x",
		"\x1b_apc\x1b\\ \x1bXsos\x1b\\ end": "  end",
		"\x1b[1ümlaut":                      "ümlaut",
		"over\u202eride, mark \u200f":       "override, mark \u200f",
		"":                                  "",
		"no end":                            "no end",
	})
}

func TestClean(t *testing.T) {
	each(t, Clean, map[string]string{
		"a\tb\nc":                        "a\tb\nc",
		"one\r\ntwo\rthree":              "one\ntwo\nthree",
		"\x1b[31mred \x03\x04\x7f\u009b": "[31mred ",
		"\x1b[201~esc":                   "[201~esc",
		"\u202aa\u2066b\u2069, \u200fc":  "ab, \u200fc",
		"bad \xff":                       "bad \ufffd",
	})
}

func TestVisible(t *testing.T) {
	each(t, Visible, map[string]string{
		"go test ./... | grep 'ü 数据 🙂'":     "go test ./... | grep 'ü 数据 🙂'",
		"a\tb\nc\r":                         `a	b\nc\r`,
		"\x1b[8mrm -rf ~\x1b[0m":            `\x1b[8mrm -rf ~\x1b[0m`,
		"right \u202eto left":               `right \u202eto left`,
		"no\u200bspace\ufeff and\u00ad it":  `no\u200bspace\ufeff and\u00ad it`,
		"tag \U000e0041":                    `tag \U000e0041`,
		"c1 \u009b2J":                       `c1 \u009b2J`,
		"lines\u2028and\u2029so on":         `lines\u2028and\u2029so on`,
		"می\u200cخواهم, 👩\u200d💻, r\u200dm": "می\u200cخواهم, 👩\u200d💻, r\\u200dm",
	})
}

// TestSequences compares with the library on sequences that are finished.
func TestSequences(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"\x1b[0m", "\x1b[38;5;1;4m", "\x1b[?25h", "\x1b[2 q", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1bP1$r\x1b\\",
			"\x1b(B", "\x1b=", "\x1b7", "\x1b#8", "\x1b_G1;AAA\x1b\\", "\x1b^pm\x1b\\", "\r", "\t", "\b", "[", "\\",
		}),
		rapid.StringMatching(`[a-zA-Z0-9 ü数🙂]*`),
	)
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		if got, want := withoutSequences(s), ansi.Strip(s); got != want {
			t.Fatalf("%q: got %q, want %q", s, got, want)
		}
	})
}

// TestHarmless: no text, finished or not, leaves anything that a terminal obeys.
func TestHarmless(t *testing.T) {
	t.Parallel()
	bad := func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	}
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for name, f := range map[string]func(string) string{"Line": Line, "Text": Text, "Clean": Clean, "Visible": Visible} {
			if got := f(s); strings.ContainsFunc(got, bad) || strings.ContainsRune(got, '\x1b') {
				t.Fatalf("%s(%q) = %q", name, s, got)
			}
		}
	})
}

package tui

import (
	"testing"
	"time"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
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
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"go test ./... | grep 'ü 数据 🙂'":     "go test ./... | grep 'ü 数据 🙂'",
		"a\tb\nc\r":                         `a	b\nc\r`,
		"\x1b[8mrm -rf ~\x1b[0m":            `\x1b[8mrm -rf ~\x1b[0m`,
		"right \u202eto left":               `right \u202eto left`,
		"no\u200bspace\ufeff and\u00ad it":  `no\u200bspace\ufeff and\u00ad it`,
		"tag \U000e0041":                    `tag \U000e0041`,
		"c1 \u009b2J":                       `c1 \u009b2J`,
		"lines\u2028and\u2029so on":         `lines\u2028and\u2029so on`,
		"می\u200cخواهم, 👩\u200d💻, r\u200dm": "می\u200cخواهم, 👩\u200d💻, r\\u200dm",
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

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

func TestPadAndCut(t *testing.T) {
	t.Parallel()
	style := Style{On: true}
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 5, "abc  "},
		{"abcdef", 4, "abc…"},
		{"数据数据", 5, "数据…"},
		{"abc", 0, ""},
		{style.Red("abcdef"), 4, "\x1b[31mabc…\x1b[0m"},
	} {
		got := Pad(c.in, c.width)
		if got != c.want {
			t.Errorf("Pad(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
		if Width(got) != c.width {
			t.Errorf("Pad(%q, %d) is %d cells wide", c.in, c.width, Width(got))
		}
	}
}

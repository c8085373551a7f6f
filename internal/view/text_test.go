package view

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

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n":                  "plain\n",
		"\x1b[32mgreen\x1b[0m\r\n": "green\n",
		"10%\r50%\r100%\r\ndone\n": "100%\ndone\n",
		"a\tb\x07\n":               "a\tb\n",
		"\x1b]0;title\x07text\n":   "text\n",
		"":                         "",
		"no end":                   "no end",
		"ü\u0085x\n":               "üx\n",
	} {
		if got := Plain(in); got != want {
			t.Errorf("Plain(%q) = %q, want %q", in, got, want)
		}
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

package sgr

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPen(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		"":                     "\x1b[0m",
		"0":                    "\x1b[0m",
		"1;31":                 "\x1b[0;1;31m",
		"1;2;22;3":             "\x1b[0;3m",
		"31;0;42":              "\x1b[0;42m",
		"97;100":               "\x1b[0;97;100m",
		"38;5;208":             "\x1b[0;38;5;208m",
		"38;5;9":               "\x1b[0;91m",
		"38;2;1;2;3;48;5;1":    "\x1b[0;38;2;1;2;3;41m",
		"38:2::1:2:3":          "\x1b[0;38;2;1;2;3m",
		"48:2:1:2:3":           "\x1b[0;48;2;1;2;3m",
		"38:5:208":             "\x1b[0;38;5;208m",
		"4:3":                  "\x1b[0;4m",
		"4;4:0":                "\x1b[0m",
		"58;5;1;3":             "\x1b[0;3m", // the colour of the underline, and no bold
		"38;5;256":             "\x1b[0m",
		"38;2;1":               "\x1b[0m",
		"7;9;27":               "\x1b[0;9m",
		"31;39;41;49":          "\x1b[0m",
		"5;8;53;99999999999;4": "\x1b[0;4m",
	} {
		var p Pen
		p.Set(params)
		if got := string(p.Append(nil)); got != want {
			t.Errorf("%q: %q, want %q", params, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	const red, plain = "\x1b[0;31m", "\x1b[0m"
	for in, want := range map[string][]string{
		"a\nb\n\n":                            {"a", "b"},
		"\x1b[31ma\nb\x1b[mc":                 {red + "a" + plain, red + "b" + plain + "c"},
		"\x1b[31m\x1b[32m\x1b[31ma":           {red + "a" + plain},
		"x\x1b[2Jy\x1b]0;title\x07z\x1b(B.":   {"xyz."},
		"x\x1b]8;;http://a\x1b\\y\x1b[?25lz":  {"xyz"},
		"x\x1b[>4my\x1b[1 mz\x1b[31":          {"xyz"},
		"a\x07b\x9bc\u009b31md\xff":           {"abc31md"},
		"数据 e\u0301":                          {"数据 e\u0301"},
		"x\x1b]0;never ended \x1b[31my\nnext": {"x" + red + "y" + plain, red + "next" + plain},
	} {
		if got := Lines(in); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	red := Pen{FG: Palette | 1}
	for in, want := range map[string][]Run{
		"":                                      nil,
		"a\tb":                                  {{Pen{}, "ab"}},
		"a\x1b[31mb\x1b[2K\x07c\x1b[31md\x1b[m": {{Pen{}, "a"}, {red, "bcd"}},
		"\x1b[38;2;1;2;3;1m<b>\x1b[0m&":         {{Pen{FG: RGB | 0x010203, Attr: Bold}, "<b>"}, {Pen{}, "&"}},
	} {
		if got := Runs(in); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

// FuzzLines checks that lines have text and colours only, whatever they are made of, and stay as they are.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"\x1b[38;5;1ma\nb", "\x1b]8;;x\x07y", "\x1b[31", "\x1bP\x1b\\", "\u009b1m", "\x1b[:;m数"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, l := range Lines(s) {
			if strings.Contains(l, "\n") || !utf8.ValidString(l) {
				t.Fatalf("%q: %q", s, l)
			}
			if again := Lines(l); len(again) != 1 || again[0] != l {
				t.Fatalf("%q: %q, then %q", s, l, again)
			}
			for rest := l; rest != ""; {
				at := strings.IndexFunc(rest, unicode.IsControl)
				if at < 0 {
					break
				}
				end := strings.IndexByte(rest[at:], 'm')
				if rest[at] != 0x1b || end < 2 || rest[at+1] != '[' || strings.Trim(rest[at+2:at+end], "0123456789;") != "" {
					t.Fatalf("%q: %q", s, l)
				}
				rest = rest[at+end+1:]
			}
		}
	})
}

package vt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func play(cols, rows, history int, stream string) *Screen {
	s := New(cols, rows, history)
	_, _ = s.Write([]byte(stream))
	return s
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"lines", "one\r\ntwo", "one\ntwo"},
		{"wrap", strings.Repeat("x", 12), "xxxxxxxxxx\nxx"},
		{"pending wrap then newline", "0123456789\r\nx", "0123456789\nx"},
		{"pending wrap then backspace", "0123456789\bX", "01234567X9"},
		{"no wrap", "\x1b[?7l0123456789abc", "012345678c"},
		{"tab", "a\tb", "a       b"},
		{"erase", "abcdef\x1b[3D\x1b[K", "abc"},
		{"insert", "abc\r\x1b[4hX\x1b[4lY", "XYbc"},
		{"margins", "1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\n", "1\n3\n\n4"},
		{"reverse index", "1\r\n2\x1b[H\x1bM", "\n1\n2"},
		{"wide", "表示x", "表示x"},
		{"wide at the edge", "123456789表", "123456789\n表"},
		{"half of a wide one", "表\x1b[2GX", " X"},
		{"combining", "e\u0301x", "e\u0301x"},
		{"graphics", "\x1b(0lqk\x1b(Bq", "┌─┐q"},
		{"utf-8 in pieces is whole", "→", "→"},
		{"bad utf-8", "a\xffb\xe2\x86c", "a\uFFFDb\uFFFDc"},
		{"title is not text", "\x1b]2;title\x07x\x1b]0;t\x1b\\y", "xy"},
		{"dcs is not text", "\x1bPq#0\x1b\\x", "x"},
		{"cancelled", "\x1b[3\x18x", "x"},
		{"repeat", "ab\x1b[3b", "abbbb"},
		{"alternate and back", "one\x1b[?1049h\x1b[2Jtwo\x1b[?1049l!", "one!"},
		{"reset", "one\x1b[?1049h\x1bc", ""},
		{"unknown is ignored", "\x1b[?9999h\x1b[>4;2m\x1b[12$~x\x1b%Gy", "xy"},
		{"huge numbers", "\x1b[99999999999999999999;3Hx\x1b[99999@\x1b[99999S", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := play(10, 5, 10, c.in).Text(0); got != c.want {
				t.Errorf("got %q; want %q", got, c.want)
			}
			s := New(10, 5, 10) // byte by byte the result is the same
			for i := range len(c.in) {
				_, _ = s.Write([]byte{c.in[i]})
			}
			if got := s.Text(0); got != c.want {
				t.Errorf("byte by byte: %q; want %q", got, c.want)
			}
		})
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	s := New(10, 3, 4)
	for i := range 10 {
		_, _ = fmt.Fprintf(s, "line %d\r\n", i)
	}
	if got := s.Text(0); got != "line 8\nline 9" {
		t.Errorf("screen %q", got)
	}
	if got := s.Text(2); got != "line 6\nline 7\nline 8\nline 9" {
		t.Errorf("with two lines above: %q", got)
	}
	if got := s.Text(100); !strings.HasPrefix(got, "line 4\n") {
		t.Errorf("with all: %q", got)
	}
	_, _ = s.Write([]byte("\x1b[?1049h\x1b[Hfull"))
	if got := s.Text(100); got != "full" {
		t.Errorf("alternate screen with history: %q", got)
	}
	_, _ = s.Write([]byte("\x1b[?1049l\x1b[3J"))
	if got := s.Text(100); got != "line 8\nline 9" {
		t.Errorf("history after it was cleared: %q", got)
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	s := play(10, 4, 10, "1\r\n2\r\n3\r\n4")
	s.Resize(6, 2)
	if got := s.Text(10); got != "1\n2\n3\n4" {
		t.Errorf("smaller: %q", got)
	}
	if x, y := s.Cursor(); x != 1 || y != 1 {
		t.Errorf("cursor %d %d", x, y)
	}
	s.Resize(20, 6)
	_, _ = s.Write([]byte("\r\nabcdefghijklmnop"))
	if got := s.Text(0); got != "3\n4\nabcdefghijklmnop" {
		t.Errorf("larger: %q", got)
	}
	// While the alternate screen is shown, the primary one shrinks around its
	// own cursor.
	s = play(10, 4, 10, "1\r\n2\r\n3\r\n4\x1b[?1049h\x1b[Hx")
	s.Resize(10, 2)
	_, _ = s.Write([]byte("\x1b[?1049l!"))
	if got := s.Text(10); got != "1\n2\n3\n4!" {
		t.Errorf("primary after the alternate was resized: %q", got)
	}
}

// TestRedraw checks that a terminal that interprets the redraw has the same
// state, and keeps it with further output.
func TestRedraw(t *testing.T) {
	t.Parallel()
	modes := []string{
		"\x1b[?1h", "\x1b[?2004h", "\x1b[?1002h\x1b[?1006h", "\x1b[?25l", "\x1b=", "\x1b[5 q", "\x1b[>5u",
		"\x1b]2;a title\x07", "\x1b[?6h", "\x1b[4h", "\x1b[4:3;58;5;9mcurly\x1b[24;59m", "\x1b[48;5;200m\x1b[K", "\x1b[>4;2m",
		"\x1b(0", "\x1b)0\x0e", "\x1b[?7l", "\x1b[1;31m", "e\u0301",
	}
	const cols, rows = 30, 10
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		alt := false
		word := func() string {
			if r.IntN(8) == 0 {
				return modes[r.IntN(len(modes))]
			}
			return vocabulary(r, cols, rows, &alt)
		}
		a := New(cols, rows, 50)
		for range 150 {
			_, _ = a.Write([]byte(word()))
		}
		same := func(when string, b *Screen) {
			t.Helper()
			n := len(a.history.lines)
			if got, want := b.Text(n), a.Text(n); got != want {
				t.Fatalf("seed %d, %s: text\n%s\n--- want\n%s", seed, when, got, want)
			}
			if got, want := b.Redraw(0), a.Redraw(0); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, %s: state\n%q\n--- want\n%q", seed, when, got, want)
			}
		}
		b := New(cols, rows, 200)
		_, _ = b.Write(a.Redraw(1000))
		same("at once", b)
		for range 30 {
			w := []byte(word())
			_, _ = a.Write(w)
			_, _ = b.Write(w)
		}
		same("later", b)
	}
}

func TestRestoreLeavesDefaults(t *testing.T) {
	t.Parallel()
	s := play(20, 5, 10, "x\x1b[?1049h\x1b[?1h\x1b[?2004h\x1b[?1003h\x1b[?1006h\x1b[?25l\x1b=\x1b[5 q\x1b[>5u\x1b[>4;2m\x1b[?6h\x1b[2;3r\x1b[4h\x1b(0\x1b[1;31m\x1b]2;unfinished")
	_, _ = s.Write(Restore(true))
	if s.onAlt || len(s.modes) > 0 || s.keypad || s.insert || s.shape != 0 || len(s.kitty) > 0 || len(s.xtkeys) > 0 ||
		s.cur.origin || s.top != 0 || s.bottom != 4 || s.cur.pen != (style{}) || s.cur.charset != [2]byte{} {
		t.Errorf("left over: %+v", s)
	}
}

func TestScanner(t *testing.T) {
	t.Parallel()
	type piece struct {
		k Kind
		s string
	}
	for _, c := range []struct {
		in   string
		want []piece
	}{
		{"plain", []piece{{Plain, "plain"}}},
		{"a\x1b[6nb", []piece{{Plain, "a"}, {Query, "\x1b[6n"}, {Plain, "b"}}},
		{"\x1b[31mred\x1b[c", []piece{{Plain, "\x1b[31mred"}, {Query, "\x1b[c"}}},
		{"\x1b]11;?\x07x", []piece{{Query, "\x1b]11;?\x07"}, {Plain, "x"}}},
		{"\x1b]11;#fff\x1b\\x", []piece{{Plain, "\x1b]11;#fff\x1b\\x"}}},
		{"\x1bP+q544e\x1b\\", []piece{{Query, "\x1bP+q544e\x1b\\"}}},
		{"\x1b[?1049h\x1b[?25;1049l", []piece{{Enter, "\x1b[?1049h"}, {Leave, "\x1b[?25;1049l"}}},
		{"\x1b[?2004$p", []piece{{Query, "\x1b[?2004$p"}}},
		{"\x1b[?u\x1b[>1u", []piece{{Query, "\x1b[?u"}, {Plain, "\x1b[>1u"}}},
		{"\x1b[18t\x1b[22;0t", []piece{{Query, "\x1b[18t"}, {Plain, "\x1b[22;0t"}}},
		{"\x1b\x1b[5n", []piece{{Plain, "\x1b"}, {Query, "\x1b[5n"}}},
		{"\x1b[1\x18\x1b[5n", []piece{{Plain, "\x1b[1\x18"}, {Query, "\x1b[5n"}}},
		{"\x1b]2;" + strings.Repeat("t", 300) + "\x07\x1b[6n", []piece{{Plain, "\x1b]2;" + strings.Repeat("t", 300) + "\x07"}, {Query, "\x1b[6n"}}},
	} {
		for size := 1; size <= len(c.in); size++ {
			var s Scanner
			var got []piece
			add := func(k Kind, p string) {
				if n := len(got); n > 0 && k == Plain && got[n-1].k == Plain {
					got[n-1].s += p
					return
				}
				got = append(got, piece{k, p})
			}
			for rest := c.in; rest != ""; {
				n := min(size, len(rest))
				s.Scan([]byte(rest[:n]), func(k Kind, p []byte) { add(k, string(p)) })
				rest = rest[n:]
			}
			if rest := s.Flush(); len(rest) > 0 {
				add(Plain, string(rest))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%q by %d: %v; want %v", c.in, size, got, c.want)
			}
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	s := play(20, 5, 0, "\x1b[3;7H\x1b[?2004h\x1b[>3u")
	for q, want := range map[string]string{
		"\x1b[6n":         "\x1b[3;7R",
		"\x1b[5n":         "\x1b[0n",
		"\x1b[c":          "\x1b[?62;22c",
		"\x1b[?2004$p":    "\x1b[?2004;1$y",
		"\x1b[?25$p":      "\x1b[?25;1$y",
		"\x1b[?4711$p":    "\x1b[?4711;0$y",
		"\x1b[?u":         "\x1b[?3u",
		"\x1b[18t":        "\x1b[8;5;20t",
		"\x1b]11;?\x07":   "\x1b]11;rgb:0000/0000/0000\x1b\\",
		"\x1b]4;1;?\x07":  "",
		"\x1bP+q544e\x1b": "\x1bP0+r\x1b\\",
	} {
		if got := string(s.Answer([]byte(q))); got != want {
			t.Errorf("%q: %q; want %q", q, got, want)
		}
	}
}

// TestStylesAreBounded checks that a picture of a million colours neither grows
// the table nor changes what is on the screen.
func TestStylesAreBounded(t *testing.T) {
	t.Parallel()
	s := New(80, 24, 10)
	for i := range 200_000 {
		_, _ = fmt.Fprintf(s, "\x1b[%d;%dH\x1b[38;2;%d;%d;%dmx", i%24+1, i%80+1, i>>16, i>>8&255, i&255)
	}
	if len(s.styles) > styleMax {
		t.Errorf("%d styles", len(s.styles))
	}
	_, _ = s.Write([]byte("\x1b[H\x1b[38;2;9;8;7my"))
	if !bytes.Contains(s.Redraw(0), []byte("38;2;9;8;7my")) {
		t.Error("a new style is not shown")
	}
	for i := range 100_000 {
		_, _ = fmt.Fprintf(s, "\x1b[Ha\u0301%d", i%10)
	}
	if len(s.clusters) > clustersMax {
		t.Errorf("%d clusters", len(s.clusters))
	}
}

func FuzzScreen(f *testing.F) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 3))
		alt := false
		var b strings.Builder
		for range 50 {
			b.WriteString(vocabulary(r, 20, 6, &alt))
		}
		f.Add([]byte(b.String()), 15, 4)
	}
	f.Add([]byte("\x1b[4:3m表\x1b[1;1H\x1b[P\x1b[2@"), 1, 1)
	f.Fuzz(func(t *testing.T, p []byte, cols, rows int) {
		s := New(20, 6, 10)
		_, _ = s.Write(p[:len(p)/2])
		s.Resize(cols%60, rows%40)
		_, _ = s.Write(p[len(p)/2:])
		_ = s.Text(10)
		c, r := s.Size()
		b := New(c, r, 100)
		_, _ = b.Write(s.Redraw(10))
		if got, want := b.Text(0), s.Text(0); s.parser.state == ground && got != want {
			t.Errorf("redrawn %q; want %q", got, want)
		}
		var scan Scanner
		var out []byte
		scan.Scan(p, func(_ Kind, piece []byte) { out = append(out, piece...) })
		if out = append(out, scan.Flush()...); !bytes.Equal(out, p) {
			t.Errorf("scanned %q; want %q", out, p)
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	line := []byte(strings.Repeat(strings.Repeat("the quick brown fox ", 4)+"\r\n", 400))
	s := New(120, 40, 1000)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = s.Write(line)
	}
}

func BenchmarkColoured(b *testing.B) {
	line := []byte(strings.Repeat("\x1b[32mok\x1b[0m \x1b[1mname\x1b[22m of → test\r\n", 400))
	s := New(120, 40, 1000)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = s.Write(line)
	}
}

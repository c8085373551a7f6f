package term

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/backends/pty/vt"
)

// TestFramesAddUp checks that frames that are shown one after another leave on a terminal the lines of the last one,
// cut, with their attributes and its cursor, and nothing else, as does a redraw.
func TestFramesAddUp(t *testing.T) {
	t.Parallel()
	pieces := []string{"a", "b", " ", "    ", "          ", "数", "😀", "e\u0301", "✗", "│", "\x1b[1m", "\x1b[31m", "\x1b[38;2;9;8;7m", "\x1b[48;5;200m", "\x1b[7m", "\x1b[4m", "\x1b[m", "\x1b[2J", "\x1b]0;x\a", "\t"}
	dropped := strings.NewReplacer("\x1b[2J", "", "\x1b]0;x\a", "", "\t", "")
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := rapid.IntRange(1, 30).Draw(t, "cols"), rapid.IntRange(1, 4).Draw(t, "rows")
		line := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 20).Draw(t, "pieces"), "")
		})
		c, shows := newCanvas(true), vt.New(cols, rows, 0)
		c.profile = colorprofile.TrueColor
		size := func() (int, int) { return cols, rows }
		var f Frame
		for range rapid.IntRange(1, 6).Draw(t, "frames") {
			if len(f.Lines) > 0 && rapid.Bool().Draw(t, "one line") {
				lines := append([]string(nil), f.Lines...)
				lines[rapid.IntRange(0, len(lines)-1).Draw(t, "which")] = line.Draw(t, "line")
				f.Lines = lines
			} else {
				f.Lines = rapid.SliceOfN(line, 0, rows+1).Draw(t, "lines")
			}
			f.Cursor, f.X, f.Y = rapid.Bool().Draw(t, "cursor"), rapid.IntRange(0, cols-1).Draw(t, "x"), rapid.IntRange(0, rows-1).Draw(t, "y")
			if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
				c.lose()
			}
			_, _ = shows.Write(c.painted(f, size))
			if again := c.painted(f, size); again != nil {
				t.Errorf("a frame that is shown: %q", again)
			}
		}
		alone := vt.New(cols, rows, 0)
		for y := range min(rows, len(f.Lines)) {
			_, _ = fmt.Fprintf(alone, "\x1b[%dH%s\x1b[m", y+1, ansi.Truncate(dropped.Replace(f.Lines[y]), cols, ""))
		}
		if f.Cursor {
			_, _ = fmt.Fprintf(alone, "\x1b[%d;%dH", f.Y+1, f.X+1)
		}
		be := func(what string, got *vt.Screen) {
			t.Helper()
			if g, w := got.Colored(0), alone.Colored(0); g != w {
				t.Errorf("%s: %q; want %q", what, g, w)
			}
			gx, gy := got.Cursor()
			if wx, wy := alone.Cursor(); f.Cursor && (gx != wx || gy != wy) {
				t.Errorf("%s: cursor at %d,%d; want at %d,%d", what, gx, gy, wx, wy)
			}
		}
		be("one after another", shows)
		_, _ = shows.Write([]byte("\x1b[1;1Hother\x1b[31m things"))
		_, _ = shows.Write(c.redrawn())
		be("redrawn", shows)
	})
}

// TestDrift checks that what follows a character on whose width terminals do not agree stands where it belongs on
// those that measure each code point, and that nothing is left of what such a character has moved.
func TestDrift(t *testing.T) {
	t.Parallel()
	const family = "👨\u200d👩\u200d👧"
	c := newCanvas(false)
	size := func() (int, int) { return 20, 1 }
	c.painted(Frame{}, size)
	for _, s := range []struct{ line, want string }{
		{family + " a│b", "\x1b[H" + family + "\x1b[1;3H a│b\x1b[K"},
		{family + " a│c", "\x1b[1;6Hc\x1b[K"},
		{"xy a│c", "\x1b[Hxy a│c\x1b[K"},
		{"xy a│d", "\x1b[1;6Hd"},
	} {
		got := string(c.painted(Frame{Lines: []string{s.line}}, size))
		if got = strings.TrimSuffix(strings.TrimPrefix(got, "\x1b[?2026h"), "\x1b[?2026l"); got != s.want {
			t.Errorf("%q: %q; want %q", s.line, got, s.want)
		}
	}
}

package vt

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/strays"
)

// tmuxScreen returns tmux's interpretation of a stream: its text, and the
// cursor.
func tmuxScreen(t *testing.T, cols, rows int, stream []byte) (text, cursor string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "stream")
	if err := os.WriteFile(file, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp(strays.Short(), "vt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(short) }()
	run := func(args ...string) string {
		c := exec.Command("tmux", append([]string{"-u", "-S", filepath.Join(short, "s"), "-f", os.DevNull}, args...)...)
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=xterm-256color"}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	defer func() { _ = exec.Command("tmux", "-S", filepath.Join(short, "s"), "kill-server").Run() }()
	run("new-session", "-d", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows),
		"stty raw -echo; cat "+file+"; touch "+file+".done; exec sleep 1000")
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(5 * time.Minute)
	for {
		if _, err := os.Stat(file + ".done"); err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it was not shown")
		}
	}
	// tmux may not have read all of cat's output yet: wait for two equal
	// results in a row.
	look := func() (string, string) {
		return strings.TrimRight(run("capture-pane", "-p"), "\n"), strings.TrimSpace(run("display-message", "-p", "#{cursor_x} #{cursor_y} #{alternate_on}"))
	}
	text, cursor = look()
	for range 100 {
		<-tick.C
		again, at := look()
		if again == text && at == cursor {
			break
		}
		text, cursor = again, at
	}
	return text, cursor
}

// vocabulary returns sequences that full-screen programs use. Where tmux
// differs from xterm, which Screen follows (lines inserted outside the margins,
// one saved cursor for both screens, insert mode across a wrap), the sequences
// are chosen so that the difference does not show.
func vocabulary(r *rand.Rand, cols, rows int, alt *bool) string {
	n := func(m int) int { return 1 + r.IntN(m) }
	switch r.IntN(30) {
	case 0, 1, 2, 3, 4, 5:
		return strings.Repeat("word ", n(5))
	case 6:
		return strings.Repeat(string(rune('a'+r.IntN(26))), n(2*cols))
	case 7, 8:
		return "\r\n"
	case 9:
		return "\n"
	case 10, 11, 12:
		return fmt.Sprintf("\x1b[%d;%dH", n(rows), n(cols))
	case 13:
		return fmt.Sprintf("\x1b[%dJ", r.IntN(3))
	case 14:
		return fmt.Sprintf("\x1b[%dK", r.IntN(3))
	case 15:
		return fmt.Sprintf("\x1b[%d%c", n(5), "ABCD"[r.IntN(4)])
	case 16:
		return fmt.Sprintf("\x1b[2;%dr\x1b[%d;1H\x1b[%d%c", rows-n(2), 1+n(rows-3), n(4), "LM"[r.IntN(2)])
	case 17:
		return fmt.Sprintf("\x1b[%d%c", n(4), "P@X"[r.IntN(3)])
	case 18:
		a, b := n(rows), n(rows)
		return fmt.Sprintf("\x1b[%d;%dr", min(a, b), max(a, b))
	case 19:
		return "\x1bM"
	case 20:
		return "\r\x1bD"
	case 21:
		return fmt.Sprintf("\x1b[%d%c", n(3), "ST"[r.IntN(2)])
	case 22:
		return fmt.Sprintf("\x1b7\x1b[%dmx\x1b[%d;%dHyy\x1b8", 30+n(8), n(rows), n(cols))
	case 23:
		return []string{"\x1b[?7l", "\x1b[?7h"}[r.IntN(2)]
	case 24:
		return fmt.Sprintf("\x1b[%d;%dH\x1b[4hin\x1b[4l", n(rows), n(cols-4))
	case 25:
		*alt = !*alt
		if *alt {
			return "\x1b[?1049h"
		}
		return "\x1b[?1049l"
	case 26:
		return []string{"\x1b[31m", "\x1b[0m", "\x1b[1;4m", "\x1b[7m", "\x1b[38;2;1;2;3m"}[r.IntN(5)]
	case 27:
		return []string{"表示", "é", "→"}[r.IntN(3)]
	case 28:
		return fmt.Sprintf("\x1b[%d%c", n(cols), "Gd"[r.IntN(2)])
	default:
		return "\t"
	}
}

// TestAgainstTmux compares Screen with an independent implementation.
func TestAgainstTmux(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux to compare with")
	}
	const cols, rows = 40, 12
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		alt := false
		for range 300 {
			b.WriteString(vocabulary(r, cols, rows, &alt))
		}
		stream := []byte(b.String())
		s := New(cols, rows, 100)
		_, _ = s.Write(stream)
		text, cursor := tmuxScreen(t, cols, rows, stream)
		x, y := s.Cursor()
		if s.cur.wrap {
			x++ // tmux's position in that case
		}
		on := 0
		if s.Alternate() {
			on = 1
		}
		if got := s.Text(0); got != text {
			t.Errorf("seed %d: screen\n%s\n--- tmux\n%s", seed, got, text)
		}
		if got := fmt.Sprintf("%d %d %d", x, y, on); got != cursor {
			t.Errorf("seed %d: cursor %s; tmux %s", seed, got, cursor)
		}
	}
}

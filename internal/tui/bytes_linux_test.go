package tui

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/openpty"
	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// busy is a machine whose one team has members, tasks and requests.
type busy struct{ fuzzed }

func (b *busy) Open(context.Context, string) (view.Team, error) { return b, nil }
func (b *busy) Follow(ctx context.Context, _ func() view.Interest, each func(view.Snapshot)) error {
	each(crowd(8))
	<-ctx.Done()
	return nil
}

// awake is a terminal that Ctrl-z only releases for a moment: a stop would stop the test.
type awake struct{ *term.Terminal }

func (a awake) Suspend() error { return a.Pause(func() {}) }

// modes are private modes that a program sets and resets.
var modes = regexp.MustCompile("\x1b\\[\\?([0-9;]+)([hl])")

// FuzzBytes checks that the screen neither fails nor hangs on any bytes from a terminal, in any pieces,
// that Ctrl-c leaves it, and that it restores the terminal.
func FuzzBytes(f *testing.F) {
	long := strings.Repeat("x", 127)
	for _, s := range []string{
		"", "jkjk\r\x1b\x1b[A\x1bOA", ":approve\r", "?q\x1bq",
		long + "\x1b[<0;5;5M" + long[:126] + "\x1b[A", // pieces of 128 bytes: sequences that are split
		long + "数据" + long + "é\xf0\x9f\x98\x80",
		"\xff\xfe\xc3\x28\xe2\x82", "\xc0\x80\xed\xa0\x80\xf5", "\x80\x9b\x9d\x9f\x90", "mh\xe4\xb8\xffi\r",
		"\x1b[200~a line\nand another", "\x1b[200~" + strings.Repeat("paste ", 400), "\x1b\x1b[200~aaa\x1b\x1b[201~", "\x1b[201~\x1b[200~\x1b[200~x\x1b[201~\x1b[201~",
		"m\x1b[200~" + strings.Repeat("数\r\n", 900) + "\x1b[201~",
		"\x1b[<0;99999;99999M\x1b[<0;99999;99999m", "\x1b[<64;0;0M\x1b[<65;1;1M\x1b[<2;3;3M\x1b[<35;3;3M", "\x1b[<M\x1b[<1M\x1b[<;;M\x1b[<99999999999999999999;1;1M", "\x1b[M !!",
		"\x1b]11;rgb:0000/0000/0000\x1b\\", "\x1b]52;c;aGVsbG8=\a", "\x1b]52;c;!!\a\x1b]8;;\x1b\x1b\\", "\x1bP>|xterm(370)\x1b\\\x1bP1$r0m\x1b\\", "\x1b]0;never ends",
		"\x1b[?1;2c\x1b[?64;4;52c\x1b[?2026;2$y\x1b[?1u\x1b[>4;2m\x1b[1;1R",
		"\x1b[I\x1b[O\x1b[O\x1b[I\x1b\x1b[O",
		"\x1b[8;9999999;9999999t\x1b[48;99999999;99999999t\x1b[8;0;0t", "\x1b[99999999999;5~\x1b[1;99999999999A\x1b[" + strings.Repeat("9", 5000) + "A", "\x1b[" + strings.Repeat(";", 3000) + "u",
		"\x1b[97;5u\x1b[1114112u\x1b[4294967295;2;55296u\x1b[27;5;106~", "\x1b[0;0;27;1;0;1_\x1b[0;0;91;1;0;1_\x1b[0;0;65;1;0;1_\x1b[65;0;55296;1;0;9999_",
		strings.Repeat("j", 600), strings.Repeat("\x1b[<64;5;5M", 400), "q" + strings.Repeat("k", 3000), "\x1a" + strings.Repeat("k", 2000), strings.Repeat("\x1a", 5) + "x",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 8000)]
		master, tty, err := openpty.Open()
		if err != nil {
			t.Skipf("no pty: %v", err)
		}
		if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
			t.Fatal(err)
		}
		before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		// While the terminal is released, Ctrl-c discards output that was not read yet, and Ctrl-s stops it.
		before.Lflag |= unix.NOFLSH
		before.Iflag &^= unix.IXON
		if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, before); err != nil {
			t.Fatal(err)
		}
		b := &busy{fuzzed{request: view.Request{Kind: view.NeedPermission, State: "pending", Member: "worker-1", Tool: "Bash", Command: "npm publish"}}}
		u := &UI{Home: b, Team: "demo", Terminal: tty.Name(), Mouse: true, Color: true, Alerts: true, Report: filepath.Join(t.TempDir(), "report")}
		crash := make(chan any, 1)
		screen, painted, restore, err := u.open(crash)
		if err != nil {
			t.Fatal(err)
		}
		ended, written, read := make(chan error, 1), make(chan struct{}), make(chan string, 1)
		go func() { ended <- u.on(t.Context(), awake{screen}, screen.Events, painted, restore, crash) }()
		go func() {
			out, _ := io.ReadAll(master) // to the end of the last terminal
			read <- string(out)
		}()
		left := make(chan struct{})
		go func() {
			defer close(written)
			// What is open ends: strings, a sequence, a paste. What is typed while Ctrl-z releases the
			// terminal is lost.
			for bytes := slices.Concat(data, []byte("\x1b\\\x1b\\\x1b[201~\x1b[201~\x03")); ; bytes = []byte{3} {
				if _, err := master.Write(bytes); err != nil {
					t.Error(err)
				}
				select {
				case <-left:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
		select {
		case err := <-ended:
			close(left)
			if err != nil {
				report, _ := os.ReadFile(u.Report)
				t.Errorf("%v\n%s", err, report)
			}
		case <-time.After(10 * time.Minute):
			panic("the screen does not end")
		}
		after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if *after != *before {
			t.Errorf("the terminal is left as %+v; it was %+v", after, before)
		}
		if err := unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH); err != nil { // lets the writer go on
			t.Error(err)
		}
		<-written
		if err := tty.Close(); err != nil {
			t.Error(err)
		}
		on := map[string]bool{"25": true, "7": true}
		out := <-read
		for _, m := range modes.FindAllStringSubmatch(out, -1) {
			for mode := range strings.SplitSeq(m[1], ";") {
				on[mode] = m[2] == "h"
			}
		}
		if on["1049"] || len(on) < 8 {
			t.Errorf("the screen was not there: %v\n%q", on, out[max(0, len(out)-300):])
		}
		for mode, is := range on {
			if is != (mode == "25" || mode == "7") { // the cursor, and wrapping of lines
				t.Errorf("mode %s is left at %v", mode, is)
			}
		}
		if err := master.Close(); err != nil {
			t.Error(err)
		}
	})
}

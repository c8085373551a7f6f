package tmux

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		out          string
		major, minor int
		ok           bool
	}{
		{"tmux 3.3a\n", 3, 3, true}, {"tmux 3.0", 3, 0, true}, {"tmux next-3.6", 3, 6, true}, {"tmux 2.9a", 2, 9, true},
		{"tmux master", 99, 0, true}, {"tmux openbsd-7.5", 3, 2, true}, {"tmux openbsd-6.5", 2, 9, true}, {"screen", 0, 0, false}, {"", 0, 0, false},
	} {
		v, ok := parseVersion(c.out)
		if ok != c.ok || v.major != c.major || v.minor != c.minor {
			t.Errorf("parseVersion(%q) = %+v, %v", c.out, v, ok)
		}
	}
}

// A record of an exit that cannot be read is not replaced.
func TestRecordIsNotReplaced(t *testing.T) {
	t.Parallel()
	l := backends.Launch{Agent: "a", Generation: team.NewUUID(), Bundle: team.Bundle(t.TempDir())}
	path := l.Bundle.Exit()
	if err := errors.Join(bundle.WriteExit(l.Bundle, backends.Exit{Generation: l.Generation, Known: true, Code: 7}),
		os.Rename(path, path+".hidden"), os.Symlink(path, path)); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // it is read, and the log awaited, for seconds
		b := &Backend{log: slog.New(slog.DiscardHandler)}
		if e := b.conclude(l, backends.Proc{}, team.Pane{}, nil); e.Known {
			t.Errorf("%+v", e)
		}
	})
	if _, err := os.Readlink(path); err != nil {
		t.Errorf("it was replaced: %v", err)
	}
}

func TestFault28TmuxMissingOrOld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := strays.WriteProgram(old, []byte("#!/bin/sh\necho tmux 2.8\n")); err != nil {
		t.Fatal(err)
	}
	for tmux, want := range map[string]string{"no-such-tmux": "tmux was not found in PATH", old: "tmux 2.8 is too old: 3.0 or newer is needed"} {
		b := New(Options{Tmux: tmux, Layout: team.Home{Dir: dir}.Team("x"), ShimArgv: []string{"/bin/true"}})
		err := b.Check(context.Background())
		if !team.IsCode(err, team.CodeUnavailable) || err.Error() != want || !strings.Contains(team.HintOf(err), "--backend pty") {
			t.Errorf("check with %s: %v (hint %q); want %q", tmux, err, team.HintOf(err), want)
		}
		l := backends.Launch{Agent: "a", Generation: "g", Argv: []string{"true"}, Bundle: team.Bundle(filepath.Join(dir, "b"))}
		if _, err := b.Start(context.Background(), l); !team.IsCode(err, team.CodeUnavailable) {
			t.Errorf("start with %s: %v", tmux, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); err == nil {
		t.Error("a start that could not be left a bundle")
	}
}

func TestFault26Quote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":              `""`,
		"plain":         `"plain"`,
		"a\nkill":       `"a\012kill"`,
		`"$HOME\`:       `"\"\$HOME\\"`,
		"\x00\x1b\x7f;": `"\000\033\177;"`,
		"zwölf":         `"zwölf"`,
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s; want %s", in, got, want)
		}
	}
	if got := literal("#(x) %H #{y}", true); got != "##(x) %%H ##{y}" {
		t.Errorf("literal = %q", got)
	}
	if got := strings.Join(escapeAll([]string{"a;", ";", "b;c"}), "|"); got != `a\;|\;|b;c` {
		t.Errorf("escapeAll = %q", got)
	}
}

// TestPipesAreHeld checks that a command that has succeeded counts as such however long the server
// keeps its pipes, and that the end of the context ends the wait.
func TestPipesAreHeld(t *testing.T) {
	t.Parallel()
	tmux := filepath.Join(t.TempDir(), "tmux")
	if err := strays.WriteProgram(tmux, []byte("#!/bin/sh\necho pane\nsleep ${9} &\n")); err != nil {
		t.Fatal(err)
	}
	r := &execRunner{tmux: tmux, socket: "s"}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.run(ctx, "new-window", "-d", "-n", "2"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if out, err := r.run(ctxFor(t), "new-window", "-d", "-n", "2"); out != "pane" || err != nil { // the last one to end
		t.Errorf("%q, %v", out, err)
	}
}

// tmux accepts every computed layout, at every size.
func TestGridIsTakenByTmux(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp(strays.Short(), "tg")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := &execRunner{tmux: "tmux", socket: filepath.Join(dir, "s")}
	for _, size := range [][2]int{{200, 50}, {131, 40}} {
		w, h := size[0], size[1]
		if _, err := r.run(ctxFor(t), "new-session", "-d", "-s", "g", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), "cat"); err != nil {
			t.Fatal(err)
		}
		for n := 2; n <= 10; n++ {
			cmds := [][]string{{"select-layout", "-t", "g", "tiled"}, {"split-window", "-d", "-t", "g:0.0", "cat"}}
			for _, main := range []bool{true, false} {
				layout, _ := grid(n, w, h, main)
				cmds = append(cmds, []string{"select-layout", "-t", "g", layout})
			}
			if err := r.batch(ctxFor(t), cmds...); err != nil {
				t.Fatalf("%d panes in %dx%d: %v", n, w, h, err)
			}
			out, err := r.run(ctxFor(t), "display-message", "-p", "-t", "g", "#{window_layout} #{window_panes}")
			layout, _ := grid(n, w, h, false)
			if err != nil || shape(out) != shape(layout)+fmt.Sprintf(" %d", n) {
				t.Errorf("%d panes in %dx%d: tmux has %s, %v; want %s", n, w, h, out, err, layout)
			}
		}
		if _, err := r.run(ctxFor(t), "kill-server"); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(r.socket)
	}
}

// shape returns a layout without its checksum and pane ids.
func shape(l string) string {
	_, l, _ = strings.Cut(l, ",")
	parts := strings.FieldsFunc(l, func(r rune) bool { return strings.ContainsRune("{}[]", r) })
	var b strings.Builder
	for _, p := range parts {
		f := strings.Split(p, ",")
		for i := 0; i < len(f); i++ {
			if strings.Contains(f[i], "x") || (i > 0 && strings.Contains(f[i-1], "x")) || (i > 1 && strings.Contains(f[i-2], "x")) {
				b.WriteString(f[i] + ",")
			}
		}
	}
	if i := strings.LastIndexByte(l, ' '); i >= 0 {
		return b.String() + l[i:]
	}
	return b.String()
}

func TestGridTooSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, w, h int
		main    bool
		ok      bool
	}{
		{0, 80, 24, false, false}, {1, 80, 24, true, true}, {2, 80, 24, true, true}, {5, 80, 24, true, true},
		{9, 80, 24, true, false}, {2, 30, 24, true, false}, {4, 20, 8, false, false}, {7, 200, 50, true, true},
	} {
		if l, ok := grid(c.n, c.w, c.h, c.main); ok != c.ok {
			t.Errorf("grid(%d, %d, %d, %v) = %s, %v", c.n, c.w, c.h, c.main, l, ok)
		}
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	if got := title(backends.Launch{Agent: "a", Title: "x#[fg=red]\x1b\ny" + strings.Repeat("z", 100)}); got != "x[fg=red]y"+strings.Repeat("z", 70) {
		t.Errorf("title = %q", got)
	}
	if got := title(backends.Launch{Agent: "a"}); got != "a" {
		t.Errorf("title = %q", got)
	}
}

func TestParsePane(t *testing.T) {
	t.Parallel()
	p, err := parsePane("%3|@1|$0|80|24|200|50|1234|1|0|1|1||lead|demo|a|@2|4")
	want := pane{id: "%3", window: "@1", session: "$0", w: 80, h: 24, winW: 200, winH: 50, pid: 1234,
		dead: true, piped: true, grid: true, role: "lead", team: "demo", agent: "a", home: "@2", index: 4}
	if err != nil || p != want {
		t.Errorf("parsePane = %+v, %v", p, err)
	}
	for _, bad := range []string{"", "%3|@1", "%3|@1|$0|x|24|200|50|1234|1|0|1|1||lead|demo|a|@2|4"} {
		if _, err := parsePane(bad); err == nil {
			t.Errorf("parsePane(%q) succeeded", bad)
		}
	}
}

func TestRuntimeDirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a directory of another user")
	}
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	if err := os.Chown(r.Layout.Runtime(), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ensurePrivate(t.Context()); !team.IsCode(err, team.CodeDenied) {
		t.Errorf("a server in the directory of another user: %v; want denied", err)
	}
}

package backendtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

func interrupt(t *testing.T, r *Rig) {
	b := r.Open(t)
	h := start(t, b, Launch(t, r, "a", "idle"))
	r.logged(t, "a", "idle")
	if err := h.Interrupt(within(t)); err != nil {
		t.Fatal(err)
	}
	if e := exit(t, h); e.Signal != "SIGINT" {
		t.Errorf("exit = %+v; want SIGINT", e)
	}
	if err := h.Interrupt(within(t)); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("interrupt after the exit: %v; want not found", err)
	}
}

func typeText(t *testing.T, r *Rig) {
	b := r.Open(t)
	h := start(t, b, Launch(t, r, "a", "lines"))
	r.logged(t, "a", "idle")
	for _, c := range []struct{ text, want string }{
		{"hello", "got <hello>"},
		{"; kill-server ;", "got <; kill-server ;>"},
		{"$HOME #{pid} #(touch x) \"'`\\ ~ %if", "got <$HOME #{pid} #(touch x) \"'`\\ ~ %if>"},
		{"Enter", "got <Enter>"},
		{"-t %0", "got <-t %0>"},
		{"\x1b[201~esc\x03\x04\x7f", "got <[201~esc>"},
		{"zwölf ✓", "got <zwölf ✓>"},
		{"two\nlines", "got <lines>"},
		{strings.Repeat("x", 4000), "got <" + strings.Repeat("x", 4000) + ">"},
	} {
		if err := h.TypeText(within(t), c.text, true); err != nil {
			t.Fatalf("type %q: %v", c.text, err)
		}
		eventually(t, fmt.Sprintf("%.60q arrives as %.60q", c.text, c.want), func() bool {
			return strings.Contains(r.log(t, "a"), c.want+"\n")
		})
	}
	r.logged(t, "a", "got <two>\n")
	if err := h.TypeText(within(t), strings.Repeat("y", 5000), true); !team.IsCode(err, team.CodeLimit) {
		t.Errorf("a line that the terminal would cut: %v; want the code limit", err)
	}
	stop(t, h)
	if err := h.TypeText(within(t), "late", true); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("type to a gone pane: %v; want not found", err)
	}
}

func capture(t *testing.T, r *Rig) {
	b := r.Open(t)
	h := start(t, b, Launch(t, r, "a", "late", "80"))
	r.logged(t, "a", "idle")
	var screen string
	eventually(t, "the screen shows the end", func() bool {
		var err error
		if screen, err = h.Capture(within(t), 0); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(screen, "line 79 of 80\nidle")
	})
	if strings.Contains(screen, "line 0 of 80") {
		t.Error("the screen holds more than a screen")
	}
	all, err := h.Capture(within(t), 500)
	if err != nil || !strings.Contains(all, "line 0 of 80\nline 1 of 80\n") {
		t.Errorf("with scrollback: %v, %q", err, all)
	}
	stop(t, h)
	if _, err := h.Capture(within(t), 0); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("capture of a gone pane: %v; want not found", err)
	}
}

// viewed covers the colours of a screen, and that nothing else gets through.
func viewed(t *testing.T, r *Rig) {
	b := r.Open(t)
	l := Launch(t, r, "a")
	l.Argv = []string{"/bin/sh", "-c", `printf '\033]0;a title\007\033[31mred\nstill\033[0m \033[1;38;5;208mx\033[0m \033[48;2;1;2;3;4my\033[0m\n'
printf '\033(0lqqk\033(B q \033]8;;http://a\033\\link\033]8;;\033\\ \033[32m\033(0x\033(B\033[0m\n'; exec cat`}
	h := start(t, b, l)
	v, ok := h.(backends.Viewer)
	if !ok || v.ViewEvery() < backends.FrameEvery {
		t.Fatalf("%T views no screen, or too often", h)
	}
	want := []string{"\x1b[0;31mred\x1b[0m", "\x1b[0;31mstill\x1b[0m \x1b[0;1;38;5;208mx\x1b[0m \x1b[0;4;48;2;1;2;3my\x1b[0m", "┌──┐ q link \x1b[0;32m│\x1b[0m"}
	var lines []string
	eventually(t, "the screen has its last line", func() bool {
		var err error
		if lines, err = v.View(within(t), 0); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(strings.Join(lines, "\n"), "│")
	})
	if !slices.Equal(lines, want) {
		t.Errorf("the screen is %q, want %q", lines, want)
	}
	back := start(t, b, Launch(t, r, "b", "late", "80"))
	r.logged(t, "b", "idle")
	eventually(t, "the history has its first line", func() bool {
		lines, err := back.(backends.Viewer).View(within(t), 500)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.Index(lines, "line 0 of 80")
		return at >= 0 && slices.Contains(lines, "line 79 of 80") && lines[at+1] == "line 1 of 80"
	})
	stop(t, back)
	stop(t, h)
	if _, err := v.View(within(t), 0); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("view of a gone pane: %v; want not found", err)
	}
}

func resize(t *testing.T, r *Rig) {
	b := r.Open(t)
	l := Launch(t, r, "a", "size")
	l.Place.Layout = team.PaneWindow // alone, so that nothing else determines its size
	h := start(t, b, l)
	for _, c := range [][2]int{{60, 20}, {120, 31}} {
		if err := h.Resize(within(t), c[0], c[1]); err != nil {
			t.Fatal(err)
		}
		r.logged(t, "a", fmt.Sprintf("size %dx%d\n", c[0], c[1]))
	}
	if err := h.Resize(within(t), 0, 5); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("resize to nothing: %v; want invalid", err)
	}
	stop(t, h)
}

func output(t *testing.T, r *Rig) {
	b := r.Open(t)
	const lines = 20_000
	h := start(t, b, Launch(t, r, "a", "flood", fmt.Sprint(lines)))
	e := exit(t, h)
	if !e.Success() {
		t.Fatalf("exit = %+v", e)
	}
	// The exit is reported once the last output is in the log.
	last := fmt.Sprintf("line %d of %d", lines-1, lines)
	if !strings.HasSuffix(e.Tail, last) {
		t.Errorf("the exit's tail ends with %.60q; want %q", e.Tail[max(0, len(e.Tail)-60):], last)
	}
	out := r.log(t, "a")
	if !strings.Contains(out, last+"\n") {
		t.Errorf("the log ends with %q when the exit is told; want %q", out[max(0, len(out)-60):], last)
	}
	if !strings.HasPrefix(out, "line 0 of") || strings.Count(out, "\n") < lines {
		t.Errorf("the log has %d lines and begins with %.40q", strings.Count(out, "\n"), out)
	}
}

// outputUnseen covers output while the owner is absent.
func outputUnseen(t *testing.T, r *Rig) {
	b := r.Open(t)
	l := Launch(t, r, "b", "late", "100")
	h := start(t, b, l)
	h.Detach()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	r.logged(t, "b", "line 99 of 100\nidle")
	if out := r.log(t, "b"); !strings.HasPrefix(out, "line 0 of 100\n") {
		t.Errorf("the log begins with %.40q", out)
	}
	if fi, err := os.Stat(l.Bundle.Log()); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the log's mode: %v, %v", fi.Mode(), err)
	}
	b = r.Open(t)
	a, err := b.Adopt(within(t), l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	stop(t, a)
}

package pty

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

func TestAttachDetachAttach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "full"))
	captured(t, a, "size 60x15")
	p := sit(t, a.Pane(), 60, 15)
	p.sees("typed:")
	p.types("xyz")
	p.sees("typed: xyz")
	if s := p.text(); !strings.HasPrefix(s, "size 60x15") || !strings.HasSuffix(s, "  last line") {
		t.Errorf("the person sees\n%s", s)
	}
	p.types("\x02\x02")
	p.sees("typed: xyz\x02"[:10])
	before, err := unix.IoctlGetTermios(int(p.slave.Fd()), getTermios)
	if err != nil || before.Lflag&unix.ICANON != 0 {
		t.Errorf("the person's terminal is not raw: %v", err)
	}
	p.types("\x02d")
	if res, err := p.back(); err != nil || !res.Detached || res.Exit != nil {
		t.Errorf("back with %+v, %v", res, err)
	}
	after, err := unix.IoctlGetTermios(int(p.slave.Fd()), getTermios)
	if err != nil || after.Lflag&unix.ICANON == 0 || after.Lflag&unix.ECHO == 0 {
		t.Errorf("the person's terminal is still raw: %v", err)
	}
	eventually(t, "the person's terminal is as before", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.screen.Alternate() && !p.screen.BracketedPaste()
	})
	if s := p.text(); !strings.Contains(s, "before") || strings.Contains(s, "typed") {
		t.Errorf("on the primary screen:\n%s", s)
	}
	// The same screen again, although the program does not redraw, because the
	// size is the same.
	q := sit(t, a.Pane(), 60, 15)
	q.sees("typed: xyz")
	if s := q.text(); !strings.HasPrefix(s, "size 60x15") || !strings.HasSuffix(s, "  last line") {
		t.Errorf("after attaching again:\n%s", s)
	}
	q.types("q")
	res, err := q.back()
	if err != nil || res.Detached || res.Exit == nil || res.Exit.Code != 7 || !res.Exit.Known {
		t.Errorf("back with %+v, %v", res.Exit, err)
	}
	<-a.Exited()
	if e := a.Exit(); e.Code != 7 || e.Tail != "before\nafter" {
		t.Errorf("exit = %+v", e)
	}
	if err := a.Dispose(within(t)); err != nil {
		t.Error(err)
	}
	late := sit(t, a.Pane(), 60, 15)
	if _, err := late.back(); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("attach to a gone agent: %v; want not found", err)
	}
}

// TestSameScreenAfterOwnerIsKilled checks that the terminal survives the
// supervisor.
func TestSameScreenAfterOwnerIsKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := launch(t, r, "a", "full")
	b := r.Open(t)
	h, err := b.Start(within(t), l)
	if err != nil {
		t.Fatal(err)
	}
	captured(t, h, "typed:")
	if err := h.TypeText(within(t), "abc", false); err != nil {
		t.Fatal(err)
	}
	captured(t, h, "typed: abc") // the paste markers display nothing
	was, err := h.Capture(within(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	a, err := r.Open(t).Adopt(within(t), l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := a.Capture(within(t), 0); err != nil || now != was {
		t.Errorf("after adoption: %v\n%s\n--- want\n%s", err, now, was)
	}
	p := sit(t, a.Pane(), 60, 15)
	p.sees("last line")
	if p.text() != was {
		t.Errorf("the person sees\n%s\n--- want\n%s", p.text(), was)
	}
	p.types("\x02d")
	if _, err := p.back(); err != nil {
		t.Error(err)
	}
	if err := a.Stop(within(t), 1); err != nil {
		t.Error(err)
	}
}

// TestVim runs a program that is not part of this repository.
func TestVim(t *testing.T) {
	t.Parallel()
	vim, err := exec.LookPath("vim")
	if err != nil {
		t.Skip("no vim")
	}
	r := newRig(t)
	l := launch(t, r, "a")
	l.Argv = []string{vim, "-u", "NONE", "-i", "NONE", "-n", "--cmd", "set nocompatible number ruler"}
	l.Env = append(l.Env, "LC_ALL=C.UTF-8")
	// The size does not change later: a Vim that learns of a new size while it
	// draws keeps the old one.
	l.Cols, l.Rows = 70, 20
	a := start(t, r, l)
	captured(t, a, "\n~\n~")
	p := sit(t, a.Pane(), 70, 20)
	p.sees("\n~\n~")
	p.types("ihello\rworld\x1byy20p")
	p.sees(" 19 world")
	p.types("gg:set list\r")
	p.sees("1 hello$")
	p.types("\x02d")
	if res, err := p.back(); err != nil || !res.Detached {
		t.Fatal(res, err)
	}
	was, err := a.Capture(within(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	q := sit(t, a.Pane(), 70, 20)
	q.sees("1 hello$")
	if q.text() != was {
		t.Errorf("attached again, the person sees\n%s\n--- want\n%s", q.text(), was)
	}
	q.types(":q!\r")
	if res, err := q.back(); err != nil || res.Exit == nil || !res.Exit.Success() {
		t.Errorf("%+v, %v", res.Exit, err)
	}
}

func TestTwoClientsAndReadOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "full"))
	captured(t, a, "typed:")
	p := sit(t, a.Pane(), 60, 15)
	p.sees("typed:")
	view := sit(t, a.Pane(), 100, 30, func(in *AttachIn) { in.ReadOnly = true })
	view.sees("size 60x15") // a viewer does not change the size
	view.types("NO")
	q := sit(t, a.Pane(), 50, 12)
	q.sees("size 50x12")
	p.sees("size 50x12") // otherwise the next screen of p may be the previous one
	p.types("a")         // the last active client sets the size
	p.sees("size 60x15")
	q.resize(70, 20)
	q.sees("size 70x20")
	q.types("b")
	for _, who := range []*person{q, view} {
		who.sees("typed: ab")
	}
	if s, err := a.Capture(within(t), 0); err != nil || strings.Contains(s, "NO") {
		t.Errorf("what the read-only client typed arrived: %v\n%s", err, s)
	}
	q.types("\x02d")
	if _, err := q.back(); err != nil {
		t.Error(err)
	}
	p.sees("size 60x15") // the size of the remaining client
	view.types("\x02d")
	if res, err := view.back(); err != nil || !res.Detached {
		t.Errorf("read-only: %+v, %v", res, err)
	}
	if err := a.Resize(within(t), 33, 9); err != nil {
		t.Fatal(err)
	}
	captured(t, a, "size 33x9")
	if err := a.Resize(within(t), 5000, 9); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("resize to 5000 columns: %v", err)
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, out string
		detach  bool
	}{
		{"abc", "abc", false},
		{"a\x02d", "a", true},
		{"a\x02\x02b", "a\x02b", false},
		{"\x02xd", "\x02xd", false},
		{"\x1b[98;5ud", "", true},
		{"\x1b[98;5u\x1b[100u", "", true},
		{"\x1b[27;5;98~d", "", true},
		{"\x1b[98;5u\x1b[98;5u", "\x1b[98;5u", false},
		{"\x1b[A\x1b", "\x1b[A\x1b", false},
	} {
		k := keys{prefix: DefaultPrefix}
		out, detach := k.feed([]byte(c.in))
		if string(out) != c.out || detach != c.detach {
			t.Errorf("%q: %q, %v; want %q, %v", c.in, out, detach, c.out, c.detach)
		}
	}
}

// TestInputEnds checks that a user whose terminal is closed counts as detached.
func TestInputEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "full"))
	captured(t, a, "typed:")
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	res, err := Attach(within(t), AttachIn{Socket: a.Pane().Socket, In: null, Out: out, Cols: 60, Rows: 15})
	if err != nil || !res.Detached {
		t.Errorf("%+v, %v", res, err)
	}
	if !proc.Alive(a.Proc().Agent) {
		t.Error("the agent died of a client's end")
	}
}

// TestShimKilledUnderAClient checks that the user is notified and that the exit
// is unknown.
func TestShimKilledUnderAClient(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "full"))
	captured(t, a, "typed:")
	p := sit(t, a.Pane(), 60, 15)
	p.sees("typed:")
	if err := proc.Signal(a.Proc().Shim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if res, err := p.back(); !team.IsCode(err, team.CodeUnavailable) || res.Exit != nil || res.Detached {
		t.Errorf("%+v, %v", res, err)
	}
	<-a.Exited()
	if a.Exit().Known {
		t.Errorf("exit = %+v", a.Exit())
	}
}

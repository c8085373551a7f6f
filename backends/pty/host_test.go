package pty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

func logOf(t *testing.T, r *backendtest.Rig, agent string) string {
	t.Helper()
	b, err := os.ReadFile(r.Layout.Bundle(agent).Log())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rawClient uses the protocol directly.
func rawClient(t *testing.T, socket, role string) (net.Conn, *frames) {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write(appendJSON(nil, kindHello, hello{Version: protocolVersion, Role: role, Cols: 60, Rows: 15})); err != nil {
		t.Fatal(err)
	}
	f := &frames{r: c, max: frameMax}
	if k, _, err := f.next(); err != nil || k != kindHello {
		t.Fatalf("hello: %c, %v", k, err)
	}
	return c, f
}

// TestLogRotation writes 10 MiB without a client, and no line is missing.
func TestLogRotation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const lines = 105_000
	l := launch(t, r, "a", "flood", fmt.Sprint(lines))
	a := start(t, r, l)
	captured(t, a, fmt.Sprintf("%08d ", lines-1))
	if s, err := a.Capture(within(t), 300); err != nil || strings.Count(s, "\n") < 300 || strings.Contains(s, "\n\n") {
		t.Errorf("history after a flood: %v, %d lines", err, strings.Count(s, "\n"))
	}
	// The exit shows that the key arrived, and may precede the answer.
	_ = a.TypeText(within(t), "", true)
	<-a.Exited()
	if e := a.Exit(); !e.Success() || !strings.Contains(e.Tail, fmt.Sprintf("%08d ", lines-1)) {
		t.Errorf("exit = %+v", e)
	}
	old, err := os.ReadFile(l.Bundle.Log() + ".1")
	if err != nil {
		t.Fatal(err)
	}
	if len(old) < bundle.LogMax || len(old) > bundle.LogMax+logQueueMax {
		t.Errorf("rotated at %d bytes", len(old))
	}
	all := strings.ReplaceAll(string(old)+logOf(t, r, "a"), "\r\n", "\n")
	for i, line := range strings.Split(all, "\n")[:lines] {
		if !strings.HasPrefix(line, fmt.Sprintf("%08d ", i)) || len(line) != 99 {
			t.Fatalf("line %d is %.60q", i, line)
		}
	}
}

// TestFault27SlowClientIsDropped has a client that does not read; neither the
// agent nor another client is affected.
func TestFault27SlowClientIsDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const lines = 60_000
	a := start(t, r, launch(t, r, "a", "flood", fmt.Sprint(lines), "later"))
	slow, f := rawClient(t, a.Pane().Socket, roleView)
	if err := a.TypeText(within(t), "", true); err != nil {
		t.Fatal(err)
	}
	captured(t, a, fmt.Sprintf("%08d ", lines-1))
	quick := sit(t, a.Pane(), 60, 15)
	quick.sees(fmt.Sprintf("%08d ", lines-1))
	got := 0
	_ = slow.SetReadDeadline(time.Now().Add(patience))
	for {
		_, p, err := f.next()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the slow client was not dropped")
			}
			break
		}
		got += len(p)
	}
	if got > 3*clientMax {
		t.Errorf("%d bytes were kept for a slow client", got)
	}
}

// TestInputToADeafAgent sends a megabyte to a program that does not read.
func TestInputToADeafAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "deaf"))
	captured(t, a, "idle")
	fill(t, a.Pane().Socket)
	err := a.TypeText(within(t), strings.Repeat("y", 900_000), true)
	if team.ReasonOf(err) != "not_read" {
		t.Errorf("type to a deaf agent: %v", err)
	}
	captured(t, a, "idle") // its holder still answers
	if !proc.Alive(a.Proc().Agent) {
		t.Error("the agent is dead")
	}
	begun := time.Now()
	if err := a.Stop(within(t), 2*time.Second); err != nil || time.Since(begun) > patience {
		t.Errorf("stop: %v after %s", err, time.Since(begun))
	}
}

// fill sends more to a program that does not read than its holder keeps, and returns once
// the holder has said so.
func fill(t *testing.T, socket string) {
	t.Helper()
	c, f := rawClient(t, socket, roleAttach)
	var sent sync.WaitGroup
	sent.Go(func() {
		chunk := bytes.Repeat([]byte("x"), 64<<10)
		for range 24 { // 1.5 MiB
			if _, err := c.Write(appendFrame(nil, kindInput, chunk)); err != nil {
				return
			}
		}
	})
	_ = c.SetReadDeadline(time.Now().Add(patience))
	for {
		k, p, err := f.next()
		if err != nil {
			t.Fatalf("no notice: %v", err)
		}
		if k == kindNotice {
			if !strings.Contains(string(p), "does not read") {
				t.Errorf("notice %q", p)
			}
			break
		}
	}
	sent.Wait()
}

func TestTypeTextTakesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// More than a terminal keeps: the first part of it is in the terminal.
	a := start(t, r, launch(t, r, "a", "deaf"))
	captured(t, a, "idle")
	var first sync.WaitGroup
	first.Go(func() {
		if err := a.TypeText(within(t), strings.Repeat("z", 200_000), false); team.ReasonOf(err) != "queued" {
			t.Errorf("%v; want the reason queued", err)
		}
	})
	defer first.Wait()
	b := start(t, r, launch(t, r, "b", "deaf"))
	captured(t, b, "idle")
	fill(t, b.Pane().Socket)
	if err := b.TypeText(within(t), "more", true); team.ReasonOf(err) != "not_read" || !team.IsCode(err, team.CodeTimeout) {
		t.Errorf("%v; want the reason not_read", err)
	}
}

func TestBracketedPaste(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "paste"))
	captured(t, a, "idle")
	if err := a.TypeText(within(t), "two\nlines\x1b[201~", true); err != nil {
		t.Fatal(err)
	}
	captured(t, a, `\x1b[200~two\nlines[201~\x1b[201~`)
}

// TestKey checks that a key that is not text arrives as a terminal sends it,
// outside a paste.
func TestKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "paste"))
	captured(t, a, "idle")
	if err := a.Key(within(t), "Hyper"); !team.IsCode(err, team.CodeInvalid) {
		t.Fatalf("an unknown key: %v", err)
	}
	if err := a.Key(within(t), "Escape"); err != nil {
		t.Fatal(err)
	}
	if err := a.TypeText(within(t), "", true); err != nil {
		t.Fatal(err)
	}
	captured(t, a, `"\x1b`)
}

// TestOneAnswer checks that a query gets one answer, whichever clients are
// attached.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "ask"))
	captured(t, a, "idle")
	if err := a.TypeText(within(t), "k", false); err != nil {
		t.Fatal(err)
	}
	captured(t, a, `answer "\x1b[2;5R"`) // without a client the model answers
	c, f := rawClient(t, a.Pane().Socket, roleAttach)
	d, g := rawClient(t, a.Pane().Socket, roleAttach)
	v, w := rawClient(t, a.Pane().Socket, roleView)
	// until reads a client's output up to a text.
	until := func(c net.Conn, f *frames, want string) []byte {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		var got []byte
		for !bytes.Contains(got, []byte(want)) {
			k, p, err := f.next()
			if err != nil {
				t.Fatalf("client: %v, after %q", err, got)
			}
			if k == kindOutput {
				got = append(got, p...)
			}
		}
		return got
	}
	if _, err := c.Write(appendFrame(nil, kindInput, []byte("k"))); err != nil {
		t.Fatal(err)
	}
	until(c, f, "here\x1b[6n")
	if _, err := c.Write(appendFrame(nil, kindInput, []byte("\x1b[9;9R"))); err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct {
		c net.Conn
		f *frames
	}{{d, g}, {v, w}} {
		if got := until(o.c, o.f, `answer "\x1b[9;9R"`); bytes.Contains(got, []byte("\x1b[6n")) {
			t.Errorf("a client that is not active was asked: %q", got)
		}
	}
	// A key is echoed as an answer only after the previous answers.
	if _, err := c.Write(appendFrame(nil, kindInput, []byte("\x1bend"))); err != nil {
		t.Fatal(err)
	}
	until(c, f, `answer "\x1bend"`)
	eventually(t, "the log has it", func() bool { return strings.Contains(logOf(t, r, "a"), `answer "\x1bend"`) })
	if n := strings.Count(logOf(t, r, "a"), "answer"); n != 3 {
		t.Errorf("%d answers to two questions and a key", n)
	}
}

// TestSocketRemoved: another program cleans the runtime directory.
func TestSocketRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "full"))
	captured(t, a, "typed:")
	if fi, err := os.Lstat(a.Pane().Socket); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", fi, err)
	}
	if err := os.Remove(a.Pane().Socket); err != nil {
		t.Fatal(err)
	}
	captured(t, a, "typed:")
	if err := os.Remove(a.Pane().Socket); err != nil {
		t.Fatal(err)
	}
	p := sit(t, a.Pane(), 60, 15, func(in *AttachIn) { in.Shim = a.Proc().Shim })
	p.sees("typed:")
	p.types("q")
	if _, err := p.back(); err != nil {
		t.Error(err)
	}
	<-a.Exited()
	if _, err := os.Lstat(a.Pane().Socket); err == nil {
		t.Error("the socket outlived the shim")
	}
}

// TestAgentClosesItsTerminal checks that closing the terminal is not an exit.
func TestAgentClosesItsTerminal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "blind"))
	captured(t, a, "idle")
	_ = a.TypeText(within(t), "x", true)
	if !proc.Alive(a.Proc().Agent) {
		t.Fatal("the agent is dead")
	}
	if err := a.Stop(within(t), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if e := a.Exit(); !e.Known || e.Signal != "SIGTERM" {
		t.Errorf("exit = %+v", e)
	}
}

// TestShimIsSmall checks that clients leave no memory behind in the shim.
func TestShimIsSmall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "full"))
	captured(t, a, "typed:")
	count := func() int {
		es, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.Proc().Shim.PID))
		if err != nil {
			t.Skipf("count the shim's descriptors: %v", err)
		}
		return len(es)
	}
	before := count()
	for range 10 {
		p := sit(t, a.Pane(), 60, 15)
		p.sees("typed:")
		p.types("\x02d")
		if _, err := p.back(); err != nil {
			t.Fatal(err)
		}
		c, _ := rawClient(t, a.Pane().Socket, roleAttach)
		_ = c.Close()
	}
	eventually(t, "the shim's descriptors are back", func() bool { return count() <= before })
	t.Logf("%d descriptors, %d kB private", before, private(t, a.Proc().Shim.PID))
}

// private returns a process's private memory, in kB.
func private(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Skip(err)
	}
	sum := 0
	for l := range strings.Lines(string(b)) {
		f := strings.Fields(l)
		if len(f) == 3 && strings.HasPrefix(f[0], "Private_") {
			n, _ := strconv.Atoi(f[1])
			sum += n
		}
	}
	return sum
}

func TestStrangersAndOldClients(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "full"))
	captured(t, a, "typed:")
	for name, frame := range map[string][]byte{
		"generation": appendJSON(nil, kindHello, hello{Version: 1, Generation: "other", Role: roleAttach}),
		"version":    appendJSON(nil, kindHello, hello{Version: 99, Role: roleAttach}),
		"role":       appendJSON(nil, kindHello, hello{Version: 1, Role: "king"}),
	} {
		c, err := net.Dial("unix", a.Pane().Socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(frame)
		f := &frames{r: c, max: frameMax}
		if k, p, err := f.next(); err != nil || k != kindReply || !bytes.Contains(p, []byte(`"error"`)) {
			t.Errorf("%s: %c %s, %v; want a refusal", name, k, p, err)
		}
		_ = c.Close()
	}
	for _, junk := range []string{"GET / HTTP/1.0\r\n\r\n", "H\xff\xff\xff\xff", "I\x00\x00\x00\x01x"} {
		c, err := net.Dial("unix", a.Pane().Socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(junk))
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%q was answered with %d bytes", junk, n)
		}
		_ = c.Close()
	}
	captured(t, a, "typed:")
}

func TestRefusals(t *testing.T) {
	r := newRig(t)
	l := launch(t, r, "a", "full")
	exe := l.Argv[0]
	for name, c := range map[string]struct {
		b    *Backend
		want string
	}{
		"a shim without our terminal": {New(Options{Layout: r.Layout, ShimArgv: []string{exe, "plainshim"}}), "does not support"},
		"no shim at all":              {New(Options{Layout: r.Layout, ShimArgv: []string{"/no/such/shim"}}), "no such file"},
		"a relative shim":             {New(Options{Layout: r.Layout, ShimArgv: []string{"shim"}}), "must be absolute"},
	} {
		_, err := c.b.Start(within(t), l)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
		if _, err := bundle.ReadLaunch(l.Bundle, ""); !team.IsCode(err, team.CodeNotFound) {
			t.Errorf("%s: launch.json was left: %v", name, err)
		}
	}
	t.Setenv(team.EnvRuntime, "/tmp/"+strings.Repeat("x", 100))
	if _, err := r.Open(t).Start(within(t), l); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("a socket path that is too long: %v; want invalid", err)
	}
	if err := os.MkdirAll(string(l.Bundle), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := bundle.WriteLaunch(l); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Open(t).Adopt(within(t), l.Bundle); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("adopt of another backend's: %v; want invalid", err)
	}
}

// TestAdoptDuringStart: the owner died between the fork and proc.json.
func TestAdoptDuringStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := launch(t, r, "a", "full")
	b := r.Open(t).(*Backend)
	if err := os.MkdirAll(string(l.Bundle), 0o700); err != nil {
		t.Fatal(err)
	}
	l.Terminal, l.Socket = Name, b.pane(l).Socket
	if err := bundle.WriteLaunch(l); err != nil {
		t.Fatal(err)
	}
	pid, err := b.fork(l)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shim has run.lock", func() bool {
		runs, err := bundle.Running(l.Bundle)
		return err == nil && runs
	})
	a, err := r.Open(t).Adopt(within(t), l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	if a.Proc().Shim.PID != pid || a.Pane().Socket != l.Socket {
		t.Errorf("adopted %+v at %+v", a.Proc(), a.Pane())
	}
	captured(t, a, "typed:")
	if err := a.Stop(within(t), time.Second); err != nil {
		t.Error(err)
	}
	_ = a.Dispose(within(t))
}

// TestStoppedShimTimesOut checks that a call to a holder that does not answer
// ends.
func TestStoppedShimTimesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "full"))
	captured(t, a, "typed:")
	if err := proc.Signal(a.Proc().Shim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped(t, a.Proc().Shim.PID)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := a.Capture(ctx, 0); !team.IsCode(err, team.CodeTimeout) {
		t.Errorf("capture: %v; want timeout", err)
	}
	if err := proc.Signal(a.Proc().Shim, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	captured(t, a, "typed:")
}

// stopped waits until every thread of a process has stopped, which is later
// than the sending of the signal.
func stopped(t *testing.T, pid int) {
	t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		all := len(stats) > 0
		for _, path := range stats {
			b, err := os.ReadFile(path)
			all = all && err == nil && bytes.Contains(b, []byte(") T "))
		}
		if all {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("process %d does not stop", pid)
		}
	}
}

func TestModelSkipsWhatNobodySees(t *testing.T) {
	t.Parallel()
	var flood bytes.Buffer
	flood.WriteString("\x1b[31mred\x1b[0m\r\n")
	for i := range 14000 {
		_, _ = fmt.Fprintf(&flood, "line %d of a flood\r\n", i)
	}
	_, _ = flood.WriteString("the end")
	lazy, eager := model{cols: 80, rows: 24}, model{cols: 80, rows: 24}
	lazy.write(flood.Bytes())
	if n := flood.Len(); n < pendingMax {
		t.Fatalf("a flood of %d bytes", n)
	}
	for rest := flood.Bytes(); len(rest) > 0; {
		n := min(100, len(rest))
		eager.write(rest[:n])
		_ = eager.now()
		rest = rest[n:]
	}
	if got, want := lazy.now().Redraw(historyLines), eager.now().Redraw(historyLines); !bytes.Equal(got, want) {
		t.Error("the screen is not the same")
	}
}

func BenchmarkModelFlood(b *testing.B) {
	chunk := bytes.Repeat([]byte(strings.Repeat("word ", 15)+"\r\n"), 53) // as returned by one read
	m := model{cols: 120, rows: 40}
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		m.write(chunk)
	}
}

func TestSocketsDirIsPrivate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.RemoveAll(r.Layout.Runtime()); err != nil {
		t.Fatal(err)
	}
	a := start(t, r, launch(t, r, "a", "full"))
	if fi, err := os.Stat(filepath.Dir(a.Pane().Socket)); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("runtime directory: %v, %v", fi, err)
	}
	var _ backends.Attached = a
}

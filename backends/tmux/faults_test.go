package tmux

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

func ended(t *testing.T, h backends.Attached) backends.Exit {
	t.Helper()
	select {
	case <-h.Exited():
		return h.Exit()
	case <-time.After(5 * time.Minute):
		t.Fatal("no exit")
		panic("unreachable")
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if err := until(context.Background(), 5*time.Minute, ok); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func idle(t *testing.T, l backends.Launch) {
	t.Helper()
	waitFor(t, l.Agent+" is idle", func() bool {
		b, err := os.ReadFile(l.Bundle.Log())
		return err == nil && strings.Contains(string(b), "idle")
	})
}

// TestFault19UserKillsPane checks that the kill is detected and named, although
// no hook fires.
func TestFault19UserKillsPane(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	for _, mode := range []string{"idle", "stubborn"} {
		l := backendtest.Launch(t, r, mode, mode)
		h := mustStart(t, b, l)
		idle(t, l)
		ex := &execRunner{tmux: "tmux", socket: r.Layout.TmuxSocket()}
		if _, err := ex.run(ctxFor(t), "kill-pane", "-t", h.Pane().PaneID); err != nil {
			t.Fatal(err)
		}
		e := ended(t, h)
		if e.Reason != backends.ReasonPaneKilled || !e.Known || e.Success() {
			t.Errorf("%s: exit = %+v; want known, %q", mode, e, backends.ReasonPaneKilled)
		}
		if want := map[string]string{"idle": "SIGHUP", "stubborn": "SIGKILL"}[mode]; e.Signal != want {
			t.Errorf("%s: signal %s; want %s", mode, e.Signal, want)
		}
		if on, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || on.Reason != backends.ReasonPaneKilled {
			t.Errorf("%s: exit.json = %+v, %v", mode, on, err)
		}
		if err := h.Dispose(ctxFor(t)); err != nil {
			t.Error(err)
		}
		mustEnd(t, mustStart(t, b, backendtest.Launch(t, r, mode, "idle"))) // in a new pane
	}
}

// TestFault18ServerKilled kills the server while it runs an agent that ignores
// SIGHUP and has children in sessions of their own.
func TestFault18ServerKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	file := filepath.Join(t.TempDir(), "pids")
	l := backendtest.Launch(t, r, "tree", "tree", file)
	h := mustStart(t, b, l)
	l2 := backendtest.Launch(t, r, "stubborn", "stubborn")
	h2 := mustStart(t, b, l2)
	// One that ends with the terminal, and with status 0.
	l4 := backendtest.Launch(t, r, "polite")
	l4.Argv = []string{"/bin/sh", "-c", "trap '' HUP; cat >/dev/null; exit 0"}
	h4 := mustStart(t, b, l4)
	idle(t, l)
	idle(t, l2)
	first := h.Pane()
	srv, err := b.serverOf(first, h.Proc().Shim.BootID)
	if err != nil {
		t.Fatal(err)
	}
	if err := proc.Signal(srv.id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, h := range []backends.Handle{h, h2, h4} {
		if e := ended(t, h); e.Reason != backends.ReasonServerGone || !e.Imposed() || h != h4 && e.Success() {
			t.Errorf("exit = %+v; want %q", e, backends.ReasonServerGone)
		}
	}
	if left := append(proc.ByGeneration(l.Generation), proc.ByGeneration(l2.Generation)...); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
	if err := h.TypeText(ctxFor(t), "x", true); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("type: %v; want not found", err)
	}
	// The next start creates a new server, where the old ids name other panes
	// (fault 20).
	l3 := backendtest.Launch(t, r, "tree", "idle")
	h3 := mustStart(t, b, l3)
	if h3.Pane().ServerPID == first.ServerPID {
		t.Error("same server")
	}
	if err := b.Hide(ctxFor(t), first); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("hide a pane of the dead server: %v; want not found", err)
	}
	if err := h.Dispose(ctxFor(t)); err != nil {
		t.Error(err)
	}
	if !proc.Alive(h3.Proc().Agent) {
		t.Error("disposing of the old pane ended the new one")
	}
	mustEnd(t, h3)
}

// TestFault21SocketDeleted: /tmp is cleaned.
func TestFault21SocketDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "idle")
	h := mustStart(t, b, l)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.Layout.TmuxSocket()); err != nil {
		t.Fatal(err)
	}
	b = r.Open(t).(*Backend)
	a, err := b.Adopt(ctxFor(t), l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Capture(ctxFor(t), 0); err != nil {
		t.Error(err)
	}
	h2 := mustStart(t, b, backendtest.Launch(t, r, "b", "idle"))
	if h2.Pane().ServerPID != h.Pane().ServerPID {
		t.Error("a second server was started")
	}
	mustEnd(t, h2)
	mustEnd(t, a)
}

// The socket is deleted, no living pane leads to the server, and the supervisor
// is a new one: the server is still the only one.
func TestSocketDeletedAndNobodyToAdopt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	h := mustStart(t, b, backendtest.Launch(t, r, "a", "idle"))
	mustEnd(t, h)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.Layout.TmuxSocket()); err != nil {
		t.Fatal(err)
	}
	h2 := mustStart(t, r.Open(t).(*Backend), backendtest.Launch(t, r, "b", "idle"))
	if h2.Pane().ServerPID != h.Pane().ServerPID {
		t.Error("a second server was started")
	}
	mustEnd(t, h2)
	if err := os.Remove(r.Layout.TmuxSocket()); err != nil {
		t.Fatal(err)
	}
	last := New(Options{Layout: r.Layout})
	if err := last.CloseTeam(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	if id := (backends.ProcID{BootID: h.Proc().Shim.BootID, PID: h.Pane().ServerPID, StartTicks: h.Pane().ServerStart}); proc.Alive(id) {
		t.Error("the server lives on after the team's end")
	}
}

// The socket is deleted and restored while many starts need the server: a
// client that finds no listener at that moment must not start a second server.
func TestSocketDeletedUnderMany(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	var bundles []team.Bundle
	var server int
	for i := range 4 {
		l := backendtest.Launch(t, r, fmt.Sprintf("m%d", i), "idle")
		server = mustStart(t, b, l).Pane().ServerPID
		bundles = append(bundles, l.Bundle)
	}
	for round := range 3 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = r.Open(t).(*Backend)
		var wg sync.WaitGroup
		have := make([]backends.Attached, len(bundles)+1)
		for i, at := range bundles {
			wg.Go(func() {
				a, err := b.Adopt(ctxFor(t), at)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := a.Capture(ctxFor(t), 0); err != nil {
					t.Error(err)
				}
				have[i] = a
			})
		}
		wg.Go(func() {
			if err := os.Remove(r.Layout.TmuxSocket()); err != nil {
				t.Error(err)
			}
			h, err := b.Start(ctxFor(t), backendtest.Launch(t, r, fmt.Sprintf("x%d", round), "idle"))
			if err != nil {
				t.Error(err)
				return
			}
			if h.Pane().ServerPID != server {
				t.Errorf("round %d: a second server was started", round)
			}
			have[len(bundles)] = h
		})
		wg.Wait()
		if t.Failed() {
			return // closing the team ends them
		}
		mustEnd(t, have[len(bundles)])
		if round == 2 {
			for _, a := range have[:len(bundles)] {
				mustEnd(t, a)
			}
		}
	}
}

// A server was started, and its starter killed before recording it; then its
// socket is deleted too. No second server may be started.
func TestServerThatNobodyRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "idle")
	was := mustStart(t, b, l).Pane().ServerPID
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{r.Layout.TmuxServer(), r.Layout.TmuxSocket()} {
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
	b = r.Open(t).(*Backend)
	h := mustStart(t, b, backendtest.Launch(t, r, "b", "idle"))
	if is := h.Pane().ServerPID; is != was && runtime.GOOS == "linux" {
		t.Errorf("server %d was started beside %d", is, was)
	}
	mustEnd(t, h)
	a, err := b.Adopt(ctxFor(t), l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, a)
}

// TestFault22KillThenStart: a start meets a server that is just exiting.
func TestFault22KillThenStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	for range 3 {
		h := mustStart(t, b, backendtest.Launch(t, r, "a", "idle"))
		ex := &execRunner{tmux: "tmux", socket: r.Layout.TmuxSocket()}
		if _, err := ex.run(ctxFor(t), "kill-server"); err != nil {
			t.Fatal(err)
		}
		l := backendtest.Launch(t, r, "b", "idle")
		h2 := mustStart(t, b, l)
		if e := ended(t, h); e.Success() {
			t.Errorf("exit = %+v", e)
		}
		mustEnd(t, h2)
	}
}

// TestFault02KilledWhileStarting: the supervisor dies between creating the pane
// and everything after it; the shim continues when the kernel has released
// start.lock.
func TestFault02KilledWhileStarting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "idle")
	if err := b.Check(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	if err := bundle.WriteLaunch(l); err != nil {
		t.Fatal(err)
	}
	lk, err := bundle.LockStart(l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	if err := bundle.CreateLog(l.Bundle.Log()); err != nil {
		t.Fatal(err)
	}
	at, err := b.put(ctxFor(t), l)
	if err != nil {
		t.Fatal(err)
	}
	s, p, pid := at.server, at.pane, at.pid
	if err := s.batch(ctxFor(t), []string{"pipe-pane", "-t", p.PaneID}); err != nil { // undo the steps that the supervisor did not reach
		t.Fatal(err)
	}
	lk.Unlock() // the death of the supervisor
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = r.Open(t).(*Backend)
	waitFor(t, "the shim is up", func() bool { runs, _ := bundle.Running(l.Bundle); return runs })
	a, err := b.Adopt(ctxFor(t), l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	if a.Proc().Shim.PID != pid || a.Pane() != p && a.Pane().PaneID != p.PaneID {
		t.Errorf("adopted %+v, %+v; want pid %d, %+v", a.Proc(), a.Pane(), pid, p)
	}
	if on, err := bundle.ReadPane(l.Bundle, l.Generation); err != nil || on.PaneID != p.PaneID {
		t.Errorf("pane.json = %+v, %v", on, err)
	}
	q, ok, err := s.find(ctxFor(t), p.PaneID)
	if err != nil || !ok || !q.piped {
		t.Errorf("pane = %+v, %v, %v; want its output caught", q, ok, err)
	}
	mustEnd(t, a)
}

// A start is abandoned before its shim comes up: the shim exits by itself and
// does not hinder the next start.
func TestStartGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	if err := b.Check(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	l := backendtest.Launch(t, r, "a", "idle")
	if err := bundle.WriteLaunch(l); err != nil {
		t.Fatal(err)
	}
	lk, err := bundle.LockStart(l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	at, err := b.put(ctxFor(t), l)
	if err != nil {
		t.Fatal(err)
	}
	id, err := proc.Identify(at.pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(ctxFor(t), l); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("start during a start: %v; want a conflict", err)
	}
	lk.Unlock()
	l2 := backendtest.Launch(t, r, "a", "idle")
	h, err := b.Start(ctxFor(t), l2)
	if team.IsCode(err, team.CodeConflict) { // the old shim was faster: then it runs, once
		waitFor(t, "the first one is up", func() bool { _, err := bundle.ReadProc(l.Bundle, l.Generation); return err == nil })
		a, err := b.Adopt(ctxFor(t), l.Bundle)
		if err != nil {
			t.Fatal(err)
		}
		mustEnd(t, a)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the old shim is gone", func() bool { return !proc.Alive(id) })
	if len(proc.ByGeneration(l.Generation)) > 0 {
		t.Error("two generations live")
	}
	mustEnd(t, h)
}

// The backends of two supervisors share one team: one server, no lost pane.
func TestTwoBackendsStartTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var wg sync.WaitGroup
	hs := make([]backends.Handle, 8)
	errs := make([]error, 8)
	bs := []backends.Backend{r.Open(t), r.Open(t)}
	for i := range hs {
		l := backendtest.Launch(t, r, fmt.Sprintf("m%d", i), "idle")
		wg.Go(func() { hs[i], errs[i] = bs[i%2].Start(ctxFor(t), l) })
	}
	wg.Wait()
	for i := range hs {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if hs[i].Pane().ServerPID != hs[0].Pane().ServerPID {
			t.Error("two servers")
		}
	}
	for _, h := range hs {
		mustEnd(t, h)
	}
}

// needControl skips a test of the control client if tmux is queried without
// one.
func needControl(t *testing.T) {
	t.Helper()
	out, err := exec.Command("tmux", "-V").Output()
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := parseVersion(string(out)); ok && !v.atLeast(3, 2) {
		t.Skipf("tmux %s has no control client of ours", v.text)
	}
}

// The control client is only a connection: if killed, it is replaced.
func TestControlClientReconnects(t *testing.T) {
	t.Parallel()
	needControl(t)
	r := newRig(t)
	b := r.Open(t).(*Backend)
	h := mustStart(t, b, backendtest.Launch(t, r, "a", "idle"))
	s, err := b.serverOf(h.Pane(), h.Proc().Shim.BootID)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ru, err := s.ask(ctxFor(t))
		if err != nil {
			t.Fatal(err)
		}
		c, ok := ru.(*control)
		if !ok {
			t.Fatalf("runner is a %T", ru)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-c.done
		if _, err := c.run(ctxFor(t), "list-panes"); err == nil {
			t.Error("a dead connection answered")
		}
		if _, err := h.Capture(ctxFor(t), 0); err != nil {
			t.Errorf("capture after a reconnect: %v", err)
		}
	}
	mustEnd(t, h)
}

// Concurrent requests, answers of megabytes, and arguments that resemble
// commands.
func TestFault27ControlClientUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	h := mustStart(t, b, backendtest.Launch(t, r, "a", "idle"))
	s, err := b.serverOf(h.Pane(), h.Proc().Shim.BootID)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				want := fmt.Sprintf("%d-%d \"$HOME\" ; kill-server '\\ ~ {}", g, i)
				got, err := s.run(ctxFor(t), "display-message", "-p", literal(want, true))
				got = strings.ReplaceAll(got, `\$`, "$") // tmux 3.4 prints it escaped
				if err != nil || got != want {
					t.Errorf("got %q, %v; want %q", got, err, want)
					return
				}
				if _, err := s.run(ctxFor(t), "no-such-command"); err == nil {
					t.Error("an unknown command was executed")
				}
			}
		})
	}
	wg.Wait()
	big := strings.Repeat("0123456789", 300_000)
	ru, err := s.ask(ctxFor(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := ru.buffer(ctxFor(t), "big", big); err != nil {
		t.Fatal(err)
	}
	got, err := ru.run(ctxFor(t), "show-buffer", "-b", "big")
	if err != nil || got != big {
		t.Errorf("a buffer of %d bytes came back with %d, %v", len(big), len(got), err)
	}
	mustEnd(t, h)
}

// Teammates are placed next to the lead, then in the next window; no pane is
// too small.
func TestPrivateLayout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	const n = besideLead + perWindow + 2
	hs := make([]backends.Handle, n)
	for i := range hs {
		hs[i] = mustStart(t, b, backendtest.Launch(t, r, fmt.Sprintf("m%d", i), "idle"))
	}
	s, err := b.serverOf(hs[0].Pane(), hs[0].Proc().Shim.BootID)
	if err != nil {
		t.Fatal(err)
	}
	ps, err := s.panes(ctxFor(t), "-a")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, p := range ps {
		count[p.window]++
		if p.winW != 200 || p.winH != 49 && p.winH != 50 {
			t.Errorf("window is %dx%d", p.winW, p.winH)
		}
		if p.w < minCols || p.h < minRows-1 {
			t.Errorf("pane %s is %dx%d", p.id, p.w, p.h)
		}
	}
	if len(count) != 3 || count[ps[0].window] != besideLead+1 || ps[0].role != "lead" || ps[0].w != 99 {
		t.Errorf("windows: %v, first pane %+v", count, ps[0])
	}
	var wg sync.WaitGroup
	for _, h := range hs {
		wg.Go(func() { mustEnd(t, h) })
	}
	wg.Wait()
	if ps, err = s.panes(ctxFor(t), "-a"); err != nil || len(ps) != 1 || ps[0].w != 200 {
		t.Errorf("left: %+v, %v; want the lead alone", ps, err)
	}
}

// A Ctrl-Z in a pane without a shell must not stop the agent for good.
func TestCtrlZDoesNotStopTheAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "lines")
	h := mustStart(t, b, l)
	idle(t, l)
	s, err := b.serverOf(h.Pane(), h.Proc().Shim.BootID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.batch(ctxFor(t), []string{"send-keys", "-t", h.Pane().PaneID, "C-z"}); err != nil {
		t.Fatal(err)
	}
	if err := h.TypeText(ctxFor(t), "still here", true); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it answers", func() bool {
		out, err := os.ReadFile(l.Bundle.Log())
		return err == nil && strings.Contains(string(out), "got <still here>")
	})
	mustEnd(t, h)
}

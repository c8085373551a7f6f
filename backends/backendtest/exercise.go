package backendtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// many is the number of agents that the part at_once starts:
// -backendtest.many=500.
var many = flag.Int("backendtest.many", 100, "agents to start at once in the conformance suite")

// Exercise runs the suite; newRig makes a new team for every part. The parts
// run in parallel with each other. The calling test must not run in parallel
// with others, because the suite counts the descriptors of the process before
// and after.
func Exercise(t *testing.T, can Capabilities, newRig func(t *testing.T) *Rig) {
	const aProcess, aTerminal = "process of their own", "terminal"
	parts := []part{
		{name: "start_and_stop", run: startAndStop},
		{name: "exit_status", run: exitStatus},
		{name: "exec_failure", run: execFailure, needs: process, missing: aProcess},
		{name: "refused_start", run: refusedStart},
		{name: "environment", run: environment},
		{name: "adopt", run: adopt, without: diesWithOwner, needs: process},
		{name: "adopt_gone", run: adoptGone},
		{name: "adopt_orphan", run: adoptOrphan, needs: process, missing: aProcess},
		{name: "restart", run: restart},
		{name: "leftovers", run: leftovers},
		{name: "stop_tree", run: stopTree},
		{name: "stop_stopped", run: stopStopped, needs: process, missing: aProcess},
		{name: "holder_killed", run: holderKilled, needs: process, missing: aProcess},
		{name: "hidden", run: hidden, needs: process, missing: aProcess},
		{name: "freeze", run: freeze},
		{name: "interrupt", run: interrupt, without: refused, needs: terminal},
		{name: "type", run: typeText, without: refused, needs: terminal},
		{name: "capture", run: capture},
		{name: "view", run: viewed, needs: terminal, missing: aTerminal},
		{name: "resize", run: resize, without: refused, needs: terminal},
		{name: "output", run: output},
		{name: "output_unseen", run: outputUnseen, needs: process, missing: aProcess},
		{name: "at_once", run: atOnce},
	}
	poller(t)
	before := descriptors(t)
	t.Run("parts", func(t *testing.T) { // every clean-up runs before the count
		for _, p := range parts {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.Can = can
				p.in(t, r)
			})
		}
	})
	eventually(t, fmt.Sprintf("descriptors back to %d", before), func() bool { return descriptors(t) <= before })
}

// poller makes the runtime open its permanent descriptors, so that they are
// counted before the first part even if nothing ran before it.
func poller(t *testing.T) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{r, w} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func startAndStop(t *testing.T, r *Rig) {
	b := r.Open(t)
	if err := b.Check(within(t)); err != nil {
		t.Fatal(err)
	}
	l := Launch(t, r, "a", "idle")
	h := start(t, b, l)
	if h.Launch().Generation != l.Generation || h.Proc().Generation != l.Generation || h.Pane().Generation != l.Generation {
		t.Errorf("handle is of another generation: %+v", h.Proc())
	}
	if !proc.Alive(h.Proc().Agent) {
		t.Error("agent does not live")
	}
	if p, err := bundle.ReadProc(l.Bundle, l.Generation); err != nil || p.Agent != h.Proc().Agent {
		t.Errorf("proc.json = %+v, %v; want %+v", p, err, h.Proc())
	}
	if p, err := bundle.ReadPane(l.Bundle, l.Generation); err != nil || p != h.Pane() {
		t.Errorf("pane.json = %+v, %v; want %+v", p, err, h.Pane())
	}
	select {
	case <-h.Exited():
		t.Fatalf("exited: %+v", h.Exit())
	default:
	}
	if err := h.Dispose(within(t)); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("dispose of a running agent: %v; want a conflict", err)
	}
	if err := h.Stop(within(t), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	e := exit(t, h)
	if !r.wasStopped(e) || e.Success() {
		t.Errorf("exit = %+v; want that of a stop", e)
	}
	if on, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || !r.wasStopped(on) {
		t.Errorf("exit.json = %+v, %v", on, err)
	}
	if err := h.Stop(within(t), time.Second); err != nil {
		t.Errorf("stop of a stopped agent: %v", err)
	}
	if err := h.Dispose(within(t)); err != nil {
		t.Error(err)
	}
	if err := h.Dispose(within(t)); err != nil {
		t.Errorf("second dispose: %v", err)
	}
}

func exitStatus(t *testing.T, r *Rig) {
	b := r.Open(t)
	for _, c := range []struct {
		args   []string
		code   int
		signal string
	}{
		{[]string{"exit", "0"}, 0, ""},
		{[]string{"exit", "7"}, 7, ""},
		{[]string{"exit", "125"}, 125, ""},
		{[]string{"exit", "255"}, 255, ""},
		{[]string{"die", "9"}, -1, "SIGKILL"},
		{[]string{"die", "15"}, -1, "SIGTERM"},
	} {
		if c.signal != "" && !r.Can.Process {
			continue
		}
		name := strings.Join(c.args, "-")
		h := start(t, b, Launch(t, r, name, c.args...))
		e := exit(t, h)
		if !e.Known || e.Code != c.code || e.Signal != c.signal || e.ExecFailed || r.Can.Process && e.Reason != "" || e.At.IsZero() {
			t.Errorf("%s: exit = %+v", name, e)
		}
		if e.Done() != (c.code == 125) || e.Success() != (c.code == 0) {
			t.Errorf("%s: done %v, success %v", name, e.Done(), e.Success())
		}
		r.logged(t, name, c.args[0])
		if err := h.Dispose(within(t)); err != nil {
			t.Error(err)
		}
	}
}

func execFailure(t *testing.T, r *Rig) {
	b := r.Open(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := strays.WriteProgram(script, []byte("#!/no/such/interpreter\n")); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		argv []string
		code int
		want string
	}{
		{[]string{"no-such-command-anywhere"}, 127, "no-such-command-anywhere"},
		{[]string{filepath.Join(dir, "missing")}, 127, "missing"},
		{[]string{script}, 127, "bad interpreter"},
		{[]string{plain}, 126, "permission denied"},
		{[]string{dir}, 126, "is a directory"},
	} {
		l := Launch(t, r, fmt.Sprintf("x%d", i))
		l.Argv = c.argv
		h := start(t, b, l)
		e := exit(t, h)
		if !e.ExecFailed || e.Success() || e.Code != c.code || !strings.Contains(e.Reason, c.want) {
			t.Errorf("%v: exit = %+v; want a failed exec with %d and %q", c.argv, e, c.code, c.want)
		}
		if err := h.Dispose(within(t)); err != nil {
			t.Error(err)
		}
	}
}

func refusedStart(t *testing.T, r *Rig) {
	b := r.Open(t)
	l := Launch(t, r, "a", "idle")
	h := start(t, b, l)
	l2 := Launch(t, r, "a", "idle")
	if _, err := b.Start(within(t), l2); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("second start of a running member: %v; want a conflict", err)
	}
	if on, err := bundle.ReadLaunch(l.Bundle, l.Generation); err != nil {
		t.Errorf("the refused start replaced launch.json: %+v, %v", on, err)
	}
	bad := Launch(t, r, "b", "idle")
	bad.Argv, bad.Generation = nil, "" // a goroutine needs no command
	if r.Can.Process {
		bad.Generation = team.NewUUID()
	}
	if _, err := b.Start(within(t), bad); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("start without what it needs: %v; want invalid", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	gone := Launch(t, r, "c", "idle")
	if _, err := b.Start(ctx, gone); err == nil {
		t.Error("start with a cancelled context succeeded")
	}
	if ids := proc.ByGeneration(gone.Generation); len(ids) > 0 {
		t.Errorf("a failed start left %v", ids)
	}
	stop(t, h)
}

func environment(t *testing.T, r *Rig) {
	b := r.Open(t)
	l := Launch(t, r, "a", "env", "SECRET", team.EnvGen, "TMUX_PANE", proc.EnvDetached, "TEAMCTL_HOME")
	h := start(t, b, l)
	r.logged(t, "a", "idle")
	out := r.log(t, "a")
	for _, want := range []string{"SECRET=x y true", team.EnvGen + "=" + l.Generation + " true", proc.EnvDetached + "= false", "TEAMCTL_HOME= false"} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("no %q in %q", want, out)
		}
	}
	if strings.Contains(out, "%stale") {
		t.Error("the agent has the launcher's TMUX_PANE")
	}
	stop(t, h)
}

func adopt(t *testing.T, r *Rig) {
	b := r.Open(t)
	l := Launch(t, r, "a", "idle")
	h := start(t, b, l)
	was := h.Proc()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // adopting works the same way the second time
		b = r.Open(t)
		a, err := b.Adopt(within(t), l.Bundle)
		if err != nil {
			t.Fatal(err)
		}
		if a.Proc() != was || a.Pane() != h.Pane() {
			t.Errorf("adopted %+v, %+v; want %+v, %+v", a.Proc(), a.Pane(), was, h.Pane())
		}
		if !proc.Alive(was.Agent) {
			t.Fatal("the agent died with its owner")
		}
		a.Detach()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b = r.Open(t)
	a, err := b.Adopt(within(t), l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	if err := proc.Signal(was.Agent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := exit(t, a); !e.Known || e.Signal != "SIGKILL" {
		t.Errorf("exit of an adopted agent = %+v; want SIGKILL", e)
	}
	if err := a.Dispose(within(t)); err != nil {
		t.Error(err)
	}
	// Stop works for adopted generations as for started ones.
	h = start(t, b, Launch(t, r, "a", "stubborn"))
	r.logged(t, "a", "idle")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = r.Open(t)
	if a, err = b.Adopt(within(t), l.Bundle); err != nil {
		t.Fatal(err)
	}
	if a.Proc() != h.Proc() {
		t.Errorf("adopted %+v; want %+v", a.Proc(), h.Proc())
	}
	stop(t, a)
}

func adoptGone(t *testing.T, r *Rig) {
	b := r.Open(t)
	if _, err := b.Adopt(within(t), r.Layout.Bundle("never")); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("adopt of nothing: %v; want not found", err)
	}
	l := Launch(t, r, "a", "exit", "4")
	h := start(t, b, l)
	exit(t, h)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = r.Open(t)
	if _, err := b.Adopt(within(t), l.Bundle); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("adopt of an exited generation: %v; want not found", err)
	}
	if e, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || e.Code != 4 {
		t.Errorf("exit.json = %+v, %v; want status 4", e, err)
	}
}

// adoptOrphan kills holder and owner: the exit was not observed, so it is
// unknown.
func adoptOrphan(t *testing.T, r *Rig) {
	b := r.Open(t)
	l := Launch(t, r, "b", "stubborn")
	h := start(t, b, l)
	r.logged(t, "b", "idle")
	pr := h.Proc()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := proc.Signal(pr.Shim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shim is dead", func() bool { return !proc.Alive(pr.Shim) })
	b = r.Open(t)
	if _, err := b.Adopt(within(t), l.Bundle); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("adopt of a generation without a holder: %v; want not found", err)
	}
	if e, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || e.Known || e.Success() || e.Leftover != 1 {
		t.Errorf("exit.json = %+v, %v; want an unknown exit with one survivor", e, err)
	}
	if proc.Alive(pr.Agent) {
		t.Error("the agent outlived the record of its exit")
	}
}

func restart(t *testing.T, r *Rig) {
	b := r.Open(t)
	for i := range 3 {
		h := start(t, b, Launch(t, r, "a", "exit", fmt.Sprint(i)))
		if e := exit(t, h); e.Code != i {
			t.Fatalf("exit %d = %+v", i, e)
		}
	}
	for i := range 3 {
		r.logged(t, "a", fmt.Sprintf("exit with %d\n", i))
	}
	h := start(t, b, Launch(t, r, "a", "idle"))
	stop(t, h)
}

func leftovers(t *testing.T, r *Rig) {
	b := r.Open(t)
	file := filepath.Join(t.TempDir(), "pids")
	h := start(t, b, Launch(t, r, "a", "leave", file))
	ids := pids(t, file)
	e := exit(t, h)
	if !e.Known || e.Code != 3 || e.Leftover != 3 {
		t.Errorf("exit = %+v; want status 3 and three leftovers", e)
	}
	for _, id := range ids {
		if proc.Alive(id) {
			t.Errorf("%d lives", id.PID)
		}
	}
	stop(t, h)
}

func stopTree(t *testing.T, r *Rig) {
	b := r.Open(t)
	file := filepath.Join(t.TempDir(), "pids")
	h := start(t, b, Launch(t, r, "a", "tree", file))
	ids := pids(t, file)
	if len(ids) != 3 {
		t.Fatalf("tree of %d", len(ids))
	}
	begun := time.Now()
	if err := h.Stop(within(t), 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begun); d > 30*time.Second { // the tree does not end by itself
		t.Errorf("stop took %s", d)
	}
	for _, id := range ids {
		if proc.Alive(id) {
			t.Errorf("%d lives after stop", id.PID)
		}
	}
	if e := exit(t, h); !e.Known {
		t.Errorf("exit = %+v", e)
	}
	if err := h.Dispose(within(t)); err != nil {
		t.Error(err)
	}
}

func stopStopped(t *testing.T, r *Rig) {
	b := r.Open(t)
	h := start(t, b, Launch(t, r, "a", "idle"))
	for _, id := range []backends.ProcID{h.Proc().Agent, h.Proc().Shim} {
		if err := proc.Signal(id, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	stop(t, h)
	if e := h.Exit(); e.Signal != "SIGTERM" {
		t.Errorf("exit = %+v; want SIGTERM", e)
	}
}

func holderKilled(t *testing.T, r *Rig) {
	b := r.Open(t)
	file := filepath.Join(t.TempDir(), "pids")
	l := Launch(t, r, "a", "tree", file)
	h := start(t, b, l)
	ids := append(pids(t, file), h.Proc().Agent)
	if err := proc.Signal(h.Proc().Shim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	e := exit(t, h)
	if e.Known || e.Success() || e.Code != -1 || e.Reason != backends.ReasonShimKilled {
		t.Errorf("exit = %+v; want unknown, %q", e, backends.ReasonShimKilled)
	}
	for _, id := range ids {
		if proc.Alive(id) {
			t.Errorf("%d survived", id.PID)
		}
	}
	if w, err := bundle.ReadLogger(l.Bundle, l.Generation); err == nil && !w.Ended {
		t.Error("the log has no end")
	}
	if on, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || on.Known {
		t.Errorf("exit.json = %+v, %v", on, err)
	}
	h = start(t, b, Launch(t, r, "a", "idle")) // the place can be reused
	stop(t, h)
}

func atOnce(t *testing.T, r *Rig) {
	b := r.Open(t)
	n := *many
	if r.Can.Few {
		n /= 4
	}
	hs := make([]backends.Handle, n)
	errs := make([]error, n)
	ls := make([]backends.Launch, n)
	for i := range ls {
		ls[i] = Launch(t, r, fmt.Sprintf("m%d", i), "idle")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range ls {
		wg.Go(func() { hs[i], errs[i] = b.Start(ctx, ls[i]) })
	}
	wg.Wait()
	places := map[string]bool{}
	for i := range hs {
		if errs[i] != nil {
			t.Fatalf("start %d: %v", i, errs[i])
		}
		if !proc.Alive(hs[i].Proc().Agent) {
			t.Errorf("agent %d does not live", i)
		}
		places[hs[i].Pane().PaneID] = true
	}
	if r.Can.Terminal && len(places) != n {
		t.Errorf("%d agents in %d panes", n, len(places))
	}
	for i := range hs {
		wg.Go(func() { errs[i] = hs[i].Stop(ctx, 5*time.Second) })
	}
	wg.Wait()
	for i := range hs {
		if errs[i] != nil {
			t.Errorf("stop %d: %v", i, errs[i])
		}
		if e := exit(t, hs[i]); !r.wasStopped(e) {
			t.Errorf("exit %d = %+v", i, e)
		}
	}
}

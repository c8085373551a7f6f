package backendtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// freeze pauses an agent: with all its descendants it makes no progress, even
// if something continues a stopped process; resumed, it continues where it was;
// and a paused agent can be stopped. A new supervisor finds it paused.
func freeze(t *testing.T, r *Rig) {
	b := r.Open(t)
	l := Launch(t, r, "a", "late", "1000000")
	h := start(t, b, l)
	f, ok := h.(backends.Freezer)
	if !ok {
		stop(t, h)
		if r.Can.Process {
			t.Fatal("agents with a process can be paused")
		}
		t.Skip("declared: agents of this backend have no process of their own to pause")
	}
	if h.Proc().Cgroup == "" {
		err := f.Freeze(within(t), true)
		if !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != "no_freezer" || !strings.Contains(err.Error(), h.Proc().Uncontained) {
			t.Errorf("pause without a control group: %v; want unavailable, no_freezer and the reason", err)
		}
		stop(t, h)
		t.Skipf("no control group: %s", h.Proc().Uncontained)
	}
	r.logged(t, "a", "line 3 of")
	if err := f.Freeze(within(t), true); err != nil {
		t.Fatal(err)
	}
	if on, err := f.Frozen(); err != nil || !on {
		t.Errorf("frozen: %v, %v", on, err)
	}
	size := settled(t, l)
	h.Detach()
	a, err := b.Adopt(within(t), l.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	f = a.(backends.Freezer)
	if on, err := f.Frozen(); err != nil || !on {
		t.Errorf("frozen after adoption: %v, %v", on, err)
	}
	if err := f.Freeze(within(t), false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on", func() bool { return logSize(t, l) > size })
	if err := f.Freeze(within(t), true); err != nil {
		t.Fatal(err)
	}
	stop(t, a)
	if e := a.Exit(); e.Signal != "SIGTERM" {
		t.Errorf("a paused agent that was stopped: %+v; want SIGTERM", e)
	}
	if err := f.Freeze(within(t), true); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("pause after the exit: %v; want not found", err)
	}
	if _, err := os.Stat(a.Proc().Cgroup); !os.IsNotExist(err) {
		t.Errorf("the control group is left: %v", err)
	}
}

// settled waits until a paused agent has written nothing for the time of 30 lines, and returns
// the log's length. What it wrote before may still be on its way to the log.
func settled(t *testing.T, l backends.Launch) (size int64) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		size = logSize(t, l)
		select {
		case <-time.After(300 * time.Millisecond):
		case <-deadline.C:
			t.Fatalf("a paused agent still writes after %s", patience)
		}
		if logSize(t, l) == size {
			return size
		}
	}
}

func logSize(t *testing.T, l backends.Launch) int64 {
	t.Helper()
	fi, err := os.Stat(l.Bundle.Log())
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}

// hidden kills the holder of an agent that has started a process which can no
// longer be recognised as its own (no parent, no environment, a session of its
// own), except by the control group.
func hidden(t *testing.T, r *Rig) {
	b := r.Open(t)
	file := filepath.Join(t.TempDir(), "pids")
	l := Launch(t, r, "a", "hide", file)
	h := start(t, b, l)
	ids := pids(t, file)
	if h.Proc().Cgroup == "" {
		stop(t, h)
		for _, id := range ids {
			_ = proc.Signal(id, 9)
		}
		t.Skipf("no control group: %s", h.Proc().Uncontained)
	}
	if len(ids) != 1 {
		t.Fatalf("%d processes", len(ids))
	}
	if slices.Contains(proc.ByGeneration(l.Generation), ids[0]) {
		t.Fatal("it is not hidden")
	}
	if err := proc.Signal(h.Proc().Shim, 9); err != nil {
		t.Fatal(err)
	}
	if e := exit(t, h); e.Known || e.Leftover < 1 {
		t.Errorf("exit = %+v", e)
	}
	if proc.Alive(ids[0]) {
		t.Error("what hid lives")
		_ = proc.Signal(ids[0], 9)
	}
	if _, err := os.Stat(h.Proc().Cgroup); !os.IsNotExist(err) {
		t.Errorf("the control group is left: %v", err)
	}
	if err := h.Dispose(within(t)); err != nil {
		t.Error(err)
	}
}

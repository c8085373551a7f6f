package supervisor

import (
	"os/exec"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestProcessesOfTheDead distinguishes dying processes from living ones and from those that are
// gone: a dying one may hold its lock for as long as the machine is busy.
func TestProcessesOfTheDead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	row := ledger.Member{}
	row.Name, row.Generation = "ann", "g-of-the-dead"
	want := func(when string, lives, dies bool) {
		t.Helper()
		if l, d := s.processes(row); l != lives || d != dies {
			t.Errorf("%s: lives %v, dies %v", when, l, d)
		}
	}
	want("before it is started", false, false)
	c := exec.Command("sleep", "600")
	c.Env = []string{team.EnvGen + "=" + row.Generation}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
	id, err := proc.Identify(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	b := r.layout.Bundle(row.Name)
	mkdir(t, string(b))
	if err := bundle.WriteProc(b, backends.Proc{Generation: row.Generation, Shim: id}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(proc.ByGeneration(row.Generation)) > 0 })
	want("while it runs", true, false)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return proc.Zombie(id) })
	want("once it is a zombie", false, true)
	_ = c.Wait()
	want("once it is gone", false, false)
}

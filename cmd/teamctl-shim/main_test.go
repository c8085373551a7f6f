package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// TestUsedBesideTeamctl: a team whose teamctl has the small program beside it runs its
// agents below that one; a small program of another version gives way to teamctl.
func TestUsedBesideTeamctl(t *testing.T) {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skipf("no process table to see programs in: %v", err)
	}
	p := build(t)
	dir, teamctl, small := p.dir, p.teamctl, p.small
	home := team.Home{Dir: filepath.Join(dir, "home")}
	env := append(os.Environ(), team.EnvHome+"="+home.Dir, team.EnvRuntime+"="+filepath.Join(dir, "r"), "TMUX=", team.EnvAgentID+"=")
	run := func(args ...string) {
		t.Helper()
		c := exec.Command(teamctl, args...)
		c.Dir, c.Env = dir, env
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("teamctl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	below := func(name string) string {
		t.Helper()
		pr, err := bundle.ReadProc(home.Team("demo").Bundle(name), "")
		if err != nil {
			t.Fatal(err)
		}
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pr.Shim.PID))
		if err != nil {
			t.Fatal(err)
		}
		return exe
	}
	run("create", "demo")
	defer run("delete", "demo", "--force")
	run("spawn", "a", "--backend", "pty", "--", "sleep", "1000")
	if exe := below("a"); exe != small {
		t.Errorf("the agent runs below %s", exe)
	}

	// A teamctl of another version calls it with that.
	if err := os.Rename(small, small+".new"); err != nil {
		t.Fatal(err)
	}
	other := "#!/bin/sh\nshift\nexec " + team.ShellQuote(small+".new") + " other \"$@\"\n"
	if err := strays.WriteProgram(small, []byte(other)); err != nil {
		t.Fatal(err)
	}
	run("spawn", "b", "--backend", "pty", "--", "sleep", "1000")
	if exe := below("b"); exe != teamctl {
		t.Errorf("beside a small program of another version the agent runs below %s", exe)
	}
	if err := os.Remove(small); err != nil {
		t.Fatal(err)
	}
	run("stop", "b")
	run("start", "b") // by the same supervisor, which has seen the small program
	if exe := below("b"); exe != teamctl {
		t.Errorf("without a small program the agent runs below %s", exe)
	}
}

// TestLinksNoCLibrary checks that no import of the small program needs the C library, as package
// net does: linking it dynamically would be a quarter of each start.
func TestLinksNoCLibrary(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("every program links the system's library")
	}
	f, err := elf.Open(filepath.Join(programs, bundle.SmallName))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	libs, err := f.ImportedLibraries()
	if err != nil || len(libs) > 0 {
		t.Errorf("teamctl-shim links %v, %v: which import does, go list -deps ./cmd/teamctl-shim tells", libs, err)
	}
}

// TestStartedByHand: a person who runs it is told what it is.
func TestStartedByHand(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = out
	status := shim.SmallMain([]string{"--help"})
	os.Stderr = stderr
	text, err := os.ReadFile(out.Name())
	_ = out.Close()
	if status != 2 || err != nil || !strings.Contains(string(text), "teamctl --help") {
		t.Errorf("status %d, %v: %s", status, err, text)
	}
}

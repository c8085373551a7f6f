package courier

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// A program that does not print its version is ended with all its descendants.
func TestVersionThatHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, child := filepath.Join(dir, "slow"), filepath.Join(dir, "child")
	if err := strays.WriteProgram(program, []byte("#!/bin/sh\nsleep 600 &\necho $! >"+child+".new\nmv "+child+".new "+child+"\nwait\n")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := Version(ctx, team.Home{Dir: dir}, []string{program}, []string{"PATH=" + os.Getenv("PATH")}, versionWithin)
		done <- err
	}()
	var pid int
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for pid == 0 {
		select {
		case <-tick.C:
			if b, err := os.ReadFile(child); err == nil {
				pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
			}
		case <-deadline:
			t.Fatal("it does not run")
		}
	}
	cancel()
	if err := <-done; !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("says %v", err)
	}
	for syscall.Kill(pid, 0) == nil && !zombie(pid) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("its child %d is left", pid)
		}
	}
}

// A program that prints its version and leaves a process with its output has printed it.
func TestVersionAndALeftover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "leaves")
	if err := strays.WriteProgram(program, []byte("#!/bin/sh\nsleep 2 &\necho 1.2.3\n")); err != nil {
		t.Fatal(err)
	}
	got, err := Version(t.Context(), team.Home{Dir: dir}, []string{program}, []string{"PATH=" + os.Getenv("PATH")}, versionWithin)
	if got != "1.2.3" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// zombie reports whether a process has exited and was not waited for.
func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(b), ") Z ")
}

// TestProgramThatIsNotThere: the error names the variable that the agent's kind reads.
func TestProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := Prepare(t.Context(), adapter.Launcher{}, adapter.Input{MemberSpec: team.MemberSpec{Agent: "claude"}, Dir: t.TempDir(), Environ: []string{"PATH=" + t.TempDir()}})
	var e *team.Error
	if !errors.As(err, &e) || e.Code != team.CodeNotFound || !strings.Contains(e.Hint, "TEAMCTL_PROGRAM_CLAUDE=/path/to/claude") {
		t.Errorf("%v", err)
	}
}

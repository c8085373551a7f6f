package shim

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
)

// An agent whose proc.json cannot be written (a full disk) could never be
// adopted or ended: it is killed, and its exit is unknown.
func TestFault13AgentThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	l := launch(t, "sh", "-c", "echo $$ >"+pidFile+"; exec sleep 1000")
	if err := os.MkdirAll(filepath.Join(l.Bundle.Proc(), "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, start(t, l)); code == 0 {
		t.Errorf("status %d", code)
	}
	if data, err := os.ReadFile(pidFile); err == nil { // otherwise it was killed before it wrote
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err == nil {
			if _, err := proc.Identify(pid); err == nil {
				t.Errorf("agent %d lives", pid)
			}
		}
	}
	e, err := bundle.ReadExit(l.Bundle, l.Generation)
	if err != nil || e.Known || e.ExecFailed || !strings.HasPrefix(e.Reason, "start failed: ") {
		t.Errorf("exit = %+v, %v", e, err)
	}
	if runs, err := bundle.Running(l.Bundle); runs || err != nil {
		t.Errorf("run.lock after the exit: %v, %v", runs, err)
	}
}

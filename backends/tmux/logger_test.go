package tmux

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

func logger(t *testing.T, l backends.Launch) backends.ProcID {
	t.Helper()
	var f struct {
		Generation string
		Logger     backends.ProcID
	}
	waitFor(t, "logger.json", func() bool {
		b, err := os.ReadFile(l.Bundle.Logger())
		return err == nil && json.Unmarshal(b, &f) == nil && f.Generation == l.Generation
	})
	return f.Logger
}

// TestLoggerKilled kills the process that writes the log: another continues,
// the agent is not affected, and nothing of either is left at the end.
func TestLoggerKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "lines")
	h := mustStart(t, b, l)
	idle(t, l)
	first := logger(t, l)
	if err := proc.Signal(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "another logger", func() bool { id := logger(t, l); return id != first && proc.Alive(id) })
	if err := h.TypeText(ctxFor(t), "after", true); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "output after it", func() bool {
		text, err := os.ReadFile(l.Bundle.Log())
		return err == nil && strings.HasPrefix(string(text), "idle") && strings.Contains(string(text), "got <after>")
	})
	second := logger(t, l)
	mustEnd(t, h)
	// Under the race detector a process takes a second longer to exit.
	waitFor(t, "the logger ends with its agent", func() bool { return !proc.Alive(second) })
	if !proc.Alive(h.Proc().Agent) && strings.Contains(h.Exit().Reason, "log") {
		t.Errorf("%+v", h.Exit())
	}
}

// TestShimWaitsForTmux: tmux closes a terminal at the exit of the shim in it, with what the
// kernel has not passed on yet. So the shim stays until tmux has read the last output.
func TestShimWaitsForTmux(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "lines")
	h := mustStart(t, b, l)
	idle(t, l)
	server := h.Pane().ServerPID
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(server, syscall.SIGCONT) }()
	if err := proc.Signal(h.Proc().Agent, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the record of the exit", func() bool { _, err := bundle.ReadExit(l.Bundle, l.Generation); return err == nil })
	if until(t.Context(), 200*time.Millisecond, func() bool { return !proc.Alive(h.Proc().Shim) }) == nil {
		t.Fatal("the shim has exited before tmux has read its last output")
	}
	if err := syscall.Kill(server, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-h.Exited()
	out, err := h.Capture(ctxFor(t), 50)
	if err != nil || !strings.Contains(out, "idle") || strings.Contains(out, "[") {
		t.Errorf("the screen is %q, %v", out, err)
	}
	mustEnd(t, h)
}

// TestLoggerMissed: a tmux before 3.6 misses deaths, including those of log
// writers. It is reminded of a zombie, even after the shim has been reaped.
func TestLoggerMissed(t *testing.T) {
	t.Parallel()
	l := backends.Launch{Bundle: team.Bundle(t.TempDir()), Generation: "g"}
	srv := exec.Command("sh", "-c", `trap 'echo reminded; exit' CHLD; echo up; while read -r _ <&3; do :; done`)
	in, never, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer never.Close()
	srv.ExtraFiles = []*os.File{in}
	out, err := srv.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	writer := exec.Command("cat")
	stdin, err := writer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{srv, writer} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatal(line, err)
	}
	identify := func(cmd *exec.Cmd) backends.ProcID {
		id, err := proc.Identify(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	file, err := json.Marshal(map[string]any{"generation": "g", "logger": identify(writer)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Bundle.Logger(), file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, quit := &server{id: identify(srv)}, make(chan struct{})
	_ = stdin.Close() // it exits and is not reaped
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.nudge(l, backends.ProcID{}, quit)
		_ = never.Close()
	}()
	defer func() { close(quit); <-ended }()
	if line, err := said.ReadString('\n'); err != nil || line != "reminded\n" {
		t.Errorf("the server is told %q, %v", line, err)
	}
}

// TestLogRotates checks that the log of a member with much output is limited
// and contains the newest output.
func TestLogRotates(t *testing.T) {
	t.Parallel()
	lines, parts := 1_200_000, []string{"", ".1", ".2"} // 26 MB
	if testing.Short() {
		lines, parts = 450_000, parts[:2] // 9.9 MB
	}
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "flood", strconv.Itoa(lines))
	h := mustStart(t, b, l)
	if e := ended(t, h); !e.Success() || !strings.HasSuffix(e.Tail, fmt.Sprintf("line %d of %d", lines-1, lines)) {
		t.Errorf("exit = %+v", e)
	}
	var total int64
	for _, n := range []string{"", ".1", ".2", ".3"} {
		fi, err := os.Stat(l.Bundle.Log() + n)
		if (err == nil) != slices.Contains(parts, n) {
			t.Errorf("output.log%s: %v", n, err)
		}
		if err == nil {
			total += fi.Size()
		}
	}
	if total > 25<<20 {
		t.Errorf("%d bytes of log", total)
	}
	if err := h.Dispose(ctxFor(t)); err != nil {
		t.Error(err)
	}
}

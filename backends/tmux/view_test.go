package tmux

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// TestView: a look at a pane of the team's own server starts no process, adds no client and resizes no
// window; what other panes write does not come over its connection; and it ends with the server.
func TestView(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	exe, err := strays.Self()
	if err != nil {
		t.Fatal(err)
	}
	wrapper, runs := filepath.Join(t.TempDir(), "tmux"), filepath.Join(t.TempDir(), "runs")
	if err := strays.WriteProgram(wrapper, []byte("#!/bin/sh\necho >>'"+runs+"'\nexec tmux \"$@\"\n")); err != nil {
		t.Fatal(err)
	}
	b := New(Options{Layout: r.Layout, ShimArgv: []string{exe, "shim"}, Tmux: wrapper})
	t.Cleanup(func() { _ = b.Close() })
	h := mustStart(t, b, backendtest.Launch(t, r, "a", "lines"))
	t.Cleanup(func() { _ = h.Stop(ctxFor(t), time.Second) })
	if !b.version.atLeast(3, 2) {
		t.Skip("without a control client each look is a process")
	}
	socket, session := r.Layout.TmuxSocket(), h.Pane().SessionID
	tmux := func(args ...string) string {
		out, err := exec.Command("tmux", append([]string{"-u", "-S", socket}, args...)...).Output()
		if err != nil {
			t.Fatalf("tmux %v: %v", args, err)
		}
		return string(out)
	}
	seen := func() string {
		lines, err := h.(backends.Viewer).View(ctxFor(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	follow(t, "its first line", func() bool { return strings.Contains(seen(), "idle") })
	state := func() string {
		began, _ := os.ReadFile(runs)
		return string(began) + tmux("list-clients") + tmux("list-windows", "-a", "-F", "#{window_id} #{window_width}x#{window_height}")
	}
	before := state()
	for range 50 {
		seen()
	}
	if got := state(); got != before {
		t.Errorf("processes, clients and windows after 50 looks:\n%s\nbefore:\n%s", got, before)
	}

	var lines, outputs atomic.Int32
	c, err := dial(ctxFor(t), "tmux", socket, session, func(line string) {
		lines.Add(1)
		if strings.HasPrefix(line, "%output") || strings.HasPrefix(line, "%extended-output") {
			outputs.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		tmux("new-window", "-d", "-n", "chatty", "-t", session, "seq 700; exec cat")
	}
	follow(t, "the others have written", func() bool {
		return strings.Count(tmux("list-panes", "-s", "-t", session, "-F", "#{window_name} #{history_size}"), "chatty 6") == 20
	})
	if out, err := c.run(ctxFor(t), "capture-pane", "-p", "-e", "-t", h.Pane().PaneID); err != nil || !strings.Contains(out, "idle") {
		t.Errorf("the screen: %q, %v", out, err)
	}
	c.close()
	if lines.Load() == 0 || outputs.Load() != 0 {
		t.Errorf("%d lines were read, %d of them output of panes; want some and none", lines.Load(), outputs.Load())
	}

	id := b.servers[socket].id
	if err := proc.Signal(id, 9); err != nil {
		t.Fatal(err)
	}
	<-h.Exited()
	if _, err := h.(backends.Viewer).View(ctxFor(t), 0); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("without a server: %v, want not found", err)
	}
}

func TestDrawn(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"quick":                              "quick",
		"\x0eqk\x0fqk":                       "─┐qk",
		"\x0eq\x1b[31mx\nx\x0f\x1b[39mx\x0e": "─\x1b[31m│\n│\x1b[39mx",
		"\x0e\x1b":                           "\x1b",
	} {
		if got := drawn(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestVerbsAlone checks that verbs lists each command under its own name, and that a command is
// the same whether it is created alone or with all others.
func TestVerbsAlone(t *testing.T) {
	t.Parallel()
	a := func() *app { return &app{out: newOutput(os.Stdout, os.Stderr, false), stdin: strings.NewReader("")} }
	full := a().root(nil)
	seen := map[string]bool{}
	for _, g := range verbs {
		for _, v := range g.all {
			c := v.make(a())
			if c.Name() != v.name || seen[v.name] {
				t.Errorf("%s is listed as %s in verbs", c.Name(), v.name)
			}
			seen[v.name] = true
			for _, alias := range c.Aliases {
				seen[alias] = true
			}
			words := []string{v.name}
			lone := a().root(words)
			among, _, err := full.Find(words)
			if err != nil {
				t.Fatal(err)
			}
			alone, _, err := lone.Find(words)
			if err != nil {
				t.Fatal(err)
			}
			if alone.CommandPath() != among.CommandPath() || alone.Short != among.Short || alone.GroupID != among.GroupID || alone.UsageString() != among.UsageString() {
				t.Errorf("%s alone:\n%s\namong all:\n%s", v.name, alone.UsageString(), among.UsageString())
			}
			if only(words) == v.name && len(lone.Commands()) != 1 {
				t.Errorf("%s makes %d commands", v.name, len(lone.Commands()))
			}
		}
	}
	for _, words := range [][]string{nil, {"help"}, {"--team", "x", "ps"}, {"ps", "-h"}, {"ps", "--help"}, {"__complete", "ps"}, {"nosuch"}, {"teams"}, {"message", "ls"}} {
		if got := a().root(words).Commands(); len(got) < len(verbs) {
			t.Errorf("%q makes %d commands only", words, len(got))
		}
	}
}

// TestBriefVerbs checks that brief verbs exist, that a command that serves is none, and that only
// a brief command stays on one processor.
func TestBriefVerbs(t *testing.T) {
	t.Parallel()
	for _, name := range briefVerbs {
		if only([]string{name}) != name {
			t.Errorf("%s is not a verb", name)
		}
	}
	if brief(nil) || brief([]string{"supervise"}) {
		t.Error("the supervisor is brief")
	}
	if runtime.NumCPU() == 1 {
		t.Skip("one processor")
	}
	// Both read their input to the end.
	onProcessors(t, 1, "hook", "claude", "PreToolUse")
	onProcessors(t, runtime.GOMAXPROCS(0), "mcp")
}

// onProcessors checks that a command runs on n processors after its start.
func onProcessors(t *testing.T, n int, args ...string) {
	t.Helper()
	cmd := exec.Command("teamctl", args...)
	cmd.Env = append(os.Environ(), "TEAMCTL_HOME="+t.TempDir(), "GODEBUG=schedtrace=5")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	trace, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	seen, want := false, fmt.Sprintf(" gomaxprocs=%d ", n)
	for lines := bufio.NewScanner(trace); !seen && lines.Scan(); {
		seen = strings.Contains(lines.Text(), want)
	}
	_ = in.Close()
	_, _ = io.Copy(io.Discard, trace)
	if err := cmd.Wait(); err != nil || !seen {
		t.Errorf("%s on %d processors: %v, %v", args[0], n, seen, err)
	}
}

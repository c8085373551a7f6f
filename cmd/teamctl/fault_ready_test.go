package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestReadyWhileNobodyListens checks that the next supervisor sees that a worker became ready
// while none was running.
func TestReadyWhileNobodyListens(t *testing.T) {
	r := newFaultRig(t)
	// The worker's first git blocks while the gate exists: the worker is running but not ready.
	gate := filepath.Join(r.dir, "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	hold, err := os.OpenFile(gate, os.O_RDWR, 0) // with a writer, so that readers block
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	bin := filepath.Join(r.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n" +
		`[ -n "$` + team.EnvGen + `" ] && [ -p '` + gate + `' ] && cat '` + gate + `'` + "\n" +
		`PATH=${PATH#*:} exec git "$@"` + "\n"
	if err := strays.WriteProgram(filepath.Join(bin, "git"), []byte(script)); err != nil {
		t.Fatal(err)
	}
	for i, kv := range r.env {
		if len(kv) > 5 && kv[:5] == "PATH=" {
			r.env[i] = "PATH=" + bin + ":" + kv[5:]
		}
	}
	r.teamctl("spawn", "w")
	if m := r.state("w", team.Running); m.Ready {
		t.Fatal("ready before it could say so")
	}
	r.kill(r.supervisor())
	if err := errors.Join(os.Remove(gate), hold.Close()); err != nil {
		t.Fatal(err)
	}
	gen := r.proc("w").Generation
	r.until("its word", func() bool { return bundle.ReadReady(r.layout.Bundle("w"), gen) == nil })
	var m ledger.Member
	r.until("w to be ready", func() bool { m = r.members()["w"]; return m.Ready })
	if m.Generation != gen || m.Reason != "" {
		t.Errorf("ready in generation %s, reason %q; it was started as %s", m.Generation, m.Reason, gen)
	}
}

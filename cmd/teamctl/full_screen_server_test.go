package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestFullScreenServerKilled checks that a comment that is being typed survives a kill of the tmux server and
// of the agent, in the open screen and in the next one, and that neither shows the member or its screen as
// current afterwards.
func TestFullScreenServerKilled(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "ann", "--backend", "tmux", "--restart", "never", "--", "sh", "-c", "echo at the prompt; exec sleep 10000")
	r.state("ann", team.Running)
	if err := os.WriteFile(filepath.Join(r.layout.Worktrees(), "ann", "cart.go"), []byte("package cart\nvar digits = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := r.sit("one", 120, 36)
	s.run("teamctl ui --select ann")
	s.shows("at the prompt")
	s.selects("j", "ann ")
	s.types("d")
	s.shows("cart.go")
	s.types("Enter")
	s.shows("n next change")
	s.types("j", "c")
	s.shows("comment on cart.go:2 of ann")
	s.keys("-l", "why two")

	server, _ := r.server("ann")
	agent := r.proc("ann").Agent
	r.kill(server)
	r.kill(agent)
	s.keys("-l", " digits?")
	r.until("the draft", func() bool { return strings.Contains(r.teamctl("review", "show", "ann"), "why two digits?") })
	s.shows("▏ why two digits?")
	r.state("ann", team.Failed)
	s.types("Enter", "Escape", "Escape")
	old := func() {
		t.Helper()
		s.sees("ann as failed, and no live screen", func(text string) bool {
			return regexp.MustCompile(`[^?] ann +failed`).MatchString(text) && !strings.Contains(text, "live")
		})
	}
	old()

	s.kill()
	s.run("teamctl ui --select ann")
	old()
	s.selects("j", "ann ")
	s.types("d")
	s.shows("cart.go")
	s.types("Enter")
	s.shows("draft 1.1: why two digits?")
	s.types("q")
	s.left()
}

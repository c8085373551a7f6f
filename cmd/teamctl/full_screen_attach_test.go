package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/proc"
)

// only returns the only child of a process.
func (r *faultRig) only(pid string) string {
	r.Helper()
	var found []string
	r.until("a child of "+pid, func() bool {
		lists, err := filepath.Glob("/proc/" + pid + "/task/*/children")
		if err != nil || len(lists) == 0 {
			r.Skipf("no list of children: %v", err)
		}
		found = nil
		for _, l := range lists {
			b, _ := os.ReadFile(l) // of a thread that may have ended
			found = append(found, strings.Fields(string(b))...)
		}
		return len(found) == 1
	})
	return found[0]
}

// TestFullScreenAttachKilled checks that a kill of the program that shows a member leads back to the full screen and
// to the plain one, which leave the terminal as it was.
func TestFullScreenAttachKilled(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "ann", "--backend", "tmux", "--worktree", "none", "--", "sh", "-c", "echo at the prompt; exec sleep 10000")
	s := r.sit("one", 120, 36)
	shell := strings.TrimSpace(s.tmux("display-message", "-p", "-t", s.name, "#{pane_pid}"))
	kill := func() {
		t.Helper()
		s.shows("at the prompt")
		s.shows("C-b d: back")
		pid, err := strconv.Atoi(r.only(r.only(shell)))
		if err != nil {
			t.Fatal(err)
		}
		id, err := proc.Identify(pid)
		if err != nil {
			t.Fatal(err)
		}
		r.kill(id)
	}
	s.run("teamctl ui --select ann")
	s.shows("at the prompt")
	s.types("o")
	s.shows("teamctl attach ann")
	s.keys("-l", "attach")
	s.types("Enter")
	kill()
	s.shows("signal: killed")
	s.types("q")
	s.left()

	s.run("clear; teamctl ui --plain")
	s.shows("help lists the words")
	s.run("attach ann")
	kill()
	s.shows("signal: killed")
	s.run("quit")
	s.left()
}

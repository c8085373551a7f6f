package main

import (
	"strings"
	"testing"
)

// TestFullScreenMerge checks that M shows what is ready to be merged, and that a second M merges
// it into the branch of the repository.
func TestFullScreenMerge(t *testing.T) {
	r := newFaultRig(t)
	s := r.sit("p", 110, 30)
	s.run("teamctl --team f")
	s.shows("q quit")
	s.types("M")
	s.shows("nothing is ready to be merged")
	r.teamctl("spawn", "cart", "--backend", "tmux", "--", "sh", "-c",
		"echo 1 >a && git add a && git commit -q -m cart")
	r.until("the branch to be ready", func() bool {
		out, err := r.try(r.exe, "merge", "--ready", "--dry-run") // fails while nothing is known of the member
		return err == nil && strings.Contains(out, "cart would be merged")
	})
	s.types("M")
	s.shows("cart would be merged into main")
	s.types("M")
	s.shows("cart merged into main")
	if log := r.command("git", "-C", "repo", "log", "--format=%s", "main"); !strings.Contains(log, "cart") {
		t.Errorf("main has\n%s", log)
	}
	s.types("q")
	s.left()
}

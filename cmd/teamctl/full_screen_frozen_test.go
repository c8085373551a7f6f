package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// TestFullScreenFrozen checks that screens report a supervisor that is stopped, and mark what it
// would keep current, until it continues; then they show what has happened meanwhile.
func TestFullScreenFrozen(t *testing.T) {
	r := newFaultRig(t)
	r.agent("ann", "never", "sleep", "10000")
	s := r.sit("one", 120, 36)
	s.run("teamctl")
	s.sees("ann as current", regexp.MustCompile(`[^?] ann `).MatchString)
	sup := r.supervisor()
	r.halt(sup)
	goOn := func() { _ = proc.Signal(sup, syscall.SIGCONT) } // fails if the test has ended it
	defer goOn()
	silent := regexp.MustCompile(`supervisor has not answered since \d\d:\d\d:\d\d, facts are of then`)
	r.until("the screen to report it", func() bool {
		s.types("j")
		return silent.MatchString(s.screen())
	})
	s.sees("ann with its age", regexp.MustCompile(`\? ann +\w+ +\d\d:\d\d`).MatchString)
	r.kill(r.proc("ann").Agent)

	plain := r.sit("two", 100, 24) // opened while it is stopped
	plain.run("teamctl ui --plain")
	plain.sees("the same in a line", func(text string) bool {
		return silent.MatchString(text) && strings.Contains(text, "the supervisor does not answer: what is said")
	})
	if !silent.MatchString(s.screen()) {
		t.Errorf("the screen does not report it any more:\n%s", s.screen())
	}

	goOn()
	s.sees("ann as it is", func(text string) bool {
		return regexp.MustCompile(`[^?] ann +failed`).MatchString(text) && !silent.MatchString(text)
	})
	plain.shows("the supervisor answers again.")
	r.state("ann", team.Failed)
	s.types("q")
	s.left()
	plain.run("quit")
	plain.left()
}

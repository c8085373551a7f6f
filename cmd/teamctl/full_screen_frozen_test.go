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
	s.types("Escape")
	s.sees("the list of teams with it", func(text string) bool {
		return strings.Contains(text, "TEAMS 1") && strings.Contains(text, "supervisor has not answered since")
	})
	s.types("Enter")
	r.kill(r.proc("ann").Agent)

	plain := r.sit("two", 100, 24) // opened while it is stopped
	plain.run("teamctl ui --plain")
	plain.sees("the same in a line", func(text string) bool {
		return silent.MatchString(text) && strings.Contains(text, "the supervisor does not answer: what is said")
	})
	plain.run("teams")
	plain.shows("team f: supervisor has not answered since")
	lines := r.follows("status", "--all", "--follow", "--json")
	newest := func() string {
		all := strings.Split(strings.TrimSpace(lines()), "\n")
		return all[len(all)-1]
	}
	r.until("the line to have it", func() bool { return strings.Contains(newest(), `"supervisorSilent":true`) })
	if !silent.MatchString(s.screen()) {
		t.Errorf("the screen does not report it any more:\n%s", s.screen())
	}

	goOn()
	s.sees("ann as it is", func(text string) bool {
		return regexp.MustCompile(`[^?] ann +failed`).MatchString(text) && !silent.MatchString(text)
	})
	plain.shows("the supervisor answers again.")
	r.until("the line not to have it", func() bool { return !strings.Contains(newest(), "supervisorSilent") })
	r.state("ann", team.Failed)
	s.types("q")
	s.left()
	plain.run("quit")
	plain.left()
}

package main

import (
	"strings"
	"testing"
)

// TestWelcomeFits checks that the output of teamctl without arguments fits a terminal of at least
// 16 lines, however many items wait for a person.
func TestWelcomeFits(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{12, 24, 50} {
		for waiting := range 60 {
			s := status{Team: "demo", Teams: []string{"demo"}, Next: []string{"teamctl wait --progress", "teamctl board"}}
			for range waiting {
				s.Waiting = append(s.Waiting, waitingItem{"a member failed", "teamctl ps"})
			}
			o, out, _ := testOutput(false)
			a := &app{out: o}
			a.showStatus(within(s, rows))
			lines := strings.Count(out.String(), "\n") + 3 // a blank line, the one about the help, the prompt
			if lines > max(rows, 16) {
				t.Errorf("%d items: %d lines of %d", waiting, lines, rows)
			}
			if waiting > 0 && !strings.Contains(out.String(), "failed") {
				t.Errorf("%d items on %d lines: none is shown", waiting, rows)
			}
		}
	}
}

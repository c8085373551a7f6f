package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

func TestBoardFrames(t *testing.T) {
	t.Parallel()
	golden(t, "board-printed.txt", strings.Join(Board(sample(), 100, epoch, Style{}), "\n")+"\n")
	golden(t, "board-empty.txt", strings.Join(Board(view.Snapshot{Team: "demo"}, 60, epoch, Style{}), "\n")+"\n")
	for cols := range 130 {
		for _, l := range Board(sample(), cols, epoch, Style{On: true}) {
			if view.Width(l) > max(cols, 1) || view.Colors(l) != l {
				t.Fatalf("%d cells of %d: %q", view.Width(l), cols, l)
			}
		}
	}
}

// The board shows which member has stalled, and since when.
func TestBoardShowsWhoHasStalled(t *testing.T) {
	t.Parallel()
	s := sample()
	for i := range s.Members {
		if s.Members[i].Name == "builder" {
			s.Members[i].StalledSince = ago(12 * time.Minute)
		}
	}
	stalled := 0
	for _, l := range Board(s, 100, epoch, Style{}) {
		if strings.Contains(l, "stalled") {
			stalled++
			if !strings.Contains(l, "● builder ") || !strings.Contains(l, "stalled "+view.Elapsed(12*time.Minute)) {
				t.Errorf("%q", l)
			}
		}
	}
	if stalled != 1 {
		t.Errorf("%d have stalled", stalled)
	}
}

// While no supervisor runs, the state of a member may be out of date: the board shows it with a question
// mark and the time at which it was known.
func TestBoardWithoutASupervisor(t *testing.T) {
	t.Parallel()
	s := sample()
	s.Down = ago(time.Minute)
	text := strings.Join(Board(s, 100, epoch, Style{}), "\n")
	at := s.Down.Local().Format("15:04:05")
	for _, want := range []string{"? builder ", " running, working at " + at, "? worker-2 ", " running, unknown at " + at, "○ probe "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestBoardColors(t *testing.T) {
	t.Parallel()
	text := strings.Join(Board(sample(), 100, epoch, Style{On: true}), "\n")
	if !strings.Contains(text, "\x1b[34m") {
		t.Error("the blue member is not blue")
	}
	plain := strings.Join(Board(sample(), 100, epoch, Style{}), "\n")
	if strings.Contains(plain, "\x1b") {
		t.Error("an escape sequence without colours")
	}
}

func BenchmarkBoard(b *testing.B) {
	s := sample()
	for b.Loop() {
		Board(s, 200, epoch.Add(time.Second), Style{On: true})
	}
}

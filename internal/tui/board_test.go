package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestBoardFrames(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{100, 30}, {80, 16}, {40, 12}, {100, 0}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			lines := Board(sample(), size[0], size[1], epoch, Style{})
			golden(t, fmt.Sprintf("board-%dx%d.txt", size[0], size[1]), strings.Join(lines, "\n")+"\n")
		})
	}
	t.Run("empty", func(t *testing.T) {
		golden(t, "board-empty.txt", strings.Join(Board(Snapshot{Team: "demo"}, 60, 6, epoch, Style{}), "\n")+"\n")
	})
}

// Whatever the terminal's size, the frame fits it: a line too many or too wide
// would scroll the screen.
func TestBoardFits(t *testing.T) {
	t.Parallel()
	big := sample()
	for i := range 60 {
		big.Tasks = append(big.Tasks, Task{ID: fmt.Sprint(100 + i), Subject: "more", Status: "pending"})
		big.Members = append(big.Members, Member{Name: fmt.Sprintf("m%d", i), State: "running"})
		big.Events = append(big.Events, Event{At: epoch, Who: "x", What: "y"})
	}
	for cols := 20; cols < 130; cols += 7 {
		for rows := 1; rows < 60; rows++ {
			for name, s := range map[string]Snapshot{"sample": sample(), "big": big, "none": {}} {
				lines := Board(s, cols, rows, epoch, Style{On: true})
				if len(lines) != rows {
					t.Fatalf("%s at %dx%d: %d lines", name, cols, rows, len(lines))
				}
				for _, l := range lines {
					if Width(l) > cols {
						t.Fatalf("%s at %dx%d: line of %d cells: %q", name, cols, rows, Width(l), l)
					}
					if strings.ContainsAny(l, "\n\r\x07") {
						t.Fatalf("%s: control character in %q", name, l)
					}
				}
			}
		}
	}
}

// Of a long board a snapshot has only what fits; the numbers are those of the whole.
func TestBoardOfALongOne(t *testing.T) {
	t.Parallel()
	s := sample()
	s.Whole = &Counts{Done: 4000, Failed: 1, Active: 2, Ready: 900, Waiting: 90, Stuck: 7, Total: 5000}
	for rows, more := range map[int]string{30: "   … and 4994 more", 16: "   … and 4998 more"} {
		lines := Board(s, 100, rows, epoch, Style{})
		text := strings.Join(lines, "\n")
		if len(lines) != rows || !strings.Contains(text, "4000/5000 done · 2 in work · 900 ready") || !strings.Contains(text, "\n"+more+"\n") {
			t.Errorf("%d lines of %d:\n%s", len(lines), rows, text)
		}
	}
}

// U21: the board says who has stalled, and since when.
func TestBoardShowsWhoHasStalled(t *testing.T) {
	t.Parallel()
	s := sample()
	for i := range s.Members {
		if s.Members[i].Name == "builder" {
			s.Members[i].StalledSince = ago(12 * time.Minute)
		}
	}
	stalled := 0
	for _, l := range Board(s, 100, 0, epoch, Style{}) {
		if strings.Contains(l, "stalled") {
			stalled++
			if !strings.Contains(l, "● builder ") || !strings.Contains(l, "stalled "+Elapsed(12*time.Minute)) {
				t.Errorf("%q", l)
			}
		}
	}
	if stalled != 1 {
		t.Errorf("%d have stalled", stalled)
	}
}

func TestBoardColors(t *testing.T) {
	t.Parallel()
	text := strings.Join(Board(sample(), 100, 30, epoch, Style{On: true}), "\n")
	if !strings.Contains(text, "\x1b[34m") {
		t.Error("the blue member is not blue")
	}
	plain := strings.Join(Board(sample(), 100, 30, epoch, Style{}), "\n")
	if strings.Contains(plain, "\x1b") {
		t.Error("an escape sequence without colours")
	}
}

func BenchmarkBoard(b *testing.B) {
	s := sample()
	for b.Loop() {
		Board(s, 200, 50, epoch.Add(time.Second), Style{On: true})
	}
}

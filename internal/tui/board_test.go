package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

func TestBoardFrames(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{100, 30}, {80, 16}, {40, 10}, {20, 5}, {100, 0}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			lines := Board(sample(), size[0], size[1], 0, epoch, Style{})
			golden(t, fmt.Sprintf("board-%dx%d.txt", size[0], size[1]), strings.Join(lines, "\n")+"\n")
		})
	}
	t.Run("empty", func(t *testing.T) {
		golden(t, "board-empty.txt", strings.Join(Board(view.Snapshot{Team: "demo"}, 60, 6, 0, epoch, Style{}), "\n")+"\n")
	})
}

// Whatever the terminal's size, the frame fits it: a line too many or too wide
// would scroll the screen.
func TestBoardFits(t *testing.T) {
	t.Parallel()
	big := sample()
	for i := range 60 {
		big.Tasks = append(big.Tasks, view.Task{ID: fmt.Sprint(100 + i), Subject: "more", Status: "pending"})
		big.Members = append(big.Members, view.Member{Name: fmt.Sprintf("m%d", i), State: "running"})
		big.Events = append(big.Events, view.Event{At: epoch, Who: "x", What: "y"})
	}
	for cols := 1; cols < 130; cols += 23 {
		for rows := 1; rows < 60; rows += 5 {
			for name, s := range map[string]view.Snapshot{"sample": sample(), "big": big, "none": {}} {
				for _, top := range []int{0, 1, 1000} {
					lines := Board(s, cols, rows, top, epoch, Style{On: true})
					if len(lines) != rows {
						t.Fatalf("%s at %dx%d from line %d: %d lines", name, cols, rows, top, len(lines))
					}
				}
				for _, l := range Board(s, cols, rows, 0, epoch, Style{On: true}) {
					if view.Width(l) > cols {
						t.Fatalf("%s at %dx%d: line of %d cells: %q", name, cols, rows, view.Width(l), l)
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
	s.Whole = &view.Counts{Done: 4000, Failed: 1, Active: 2, Ready: 900, Waiting: 90, Stuck: 7, Total: 5000}
	for rows, more := range map[int]string{30: "   … and 4994 more", 16: "   … and 4999 more"} {
		lines := Board(s, 100, rows, 0, epoch, Style{})
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
	for _, l := range Board(s, 100, 0, 0, epoch, Style{}) {
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

// No title stands over nothing, whatever the size.
func TestBoardTitles(t *testing.T) {
	t.Parallel()
	s := sample()
	for cols := 20; cols <= 120; cols += 33 {
		for rows := 1; rows < 50; rows++ {
			lines := Board(s, cols, rows, 0, epoch, Style{})
			for i, l := range lines {
				title := strings.Trim(l, " 0123456789")
				if title == "" || title != strings.ToUpper(title) || strings.ContainsAny(title, "·/…!?") {
					continue
				}
				if i+1 >= len(lines)-1 || strings.TrimSpace(lines[i+1]) == "" {
					t.Fatalf("%dx%d: %q stands over nothing:\n%s", cols, rows, l, strings.Join(lines, "\n"))
				}
			}
		}
	}
}

// Every line can be reached by scrolling.
func TestBoardScrolls(t *testing.T) {
	t.Parallel()
	s := sample()
	for i := range 60 {
		s.Tasks = append(s.Tasks, view.Task{ID: fmt.Sprint(100 + i), Subject: "more", Status: "pending"})
	}
	all := Board(s, 80, 0, 0, epoch, Style{})
	seen := map[string]bool{}
	const rows = 12
	for top := range Lines(s, 80, epoch) {
		lines := Board(s, 80, rows, top+1, epoch, Style{})
		for _, l := range lines[:rows-1] {
			seen[l] = true
		}
	}
	for _, l := range all[1:] {
		if !seen[l] {
			t.Errorf("no way to %q", l)
		}
	}
	last := Board(s, 80, rows, 1000, epoch, Style{})
	if want := fmt.Sprintf("lines %d to %d of %d", len(all)-rows+2, len(all), len(all)); !strings.Contains(last[rows-1], want) || last[rows-2] != all[len(all)-1] {
		t.Errorf("the end, want %q:\n%s", want, strings.Join(last, "\n"))
	}
}

// While no supervisor is up nobody stands behind the state of a member: it is shown with
// a question mark and with the time up to which it is known.
func TestBoardWithoutASupervisor(t *testing.T) {
	t.Parallel()
	s := sample()
	s.Down = ago(time.Minute)
	text := strings.Join(Board(s, 100, 0, 0, epoch, Style{}), "\n")
	at := s.Down.Local().Format("15:04:05")
	for _, want := range []string{"? builder ", " running, working at " + at, "? worker-2 ", " running, unknown at " + at, "○ probe "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestBoardColors(t *testing.T) {
	t.Parallel()
	text := strings.Join(Board(sample(), 100, 30, 0, epoch, Style{On: true}), "\n")
	if !strings.Contains(text, "\x1b[34m") {
		t.Error("the blue member is not blue")
	}
	plain := strings.Join(Board(sample(), 100, 30, 0, epoch, Style{}), "\n")
	if strings.Contains(plain, "\x1b") {
		t.Error("an escape sequence without colours")
	}
}

func BenchmarkBoard(b *testing.B) {
	s := sample()
	for b.Loop() {
		Board(s, 200, 50, 0, epoch.Add(time.Second), Style{On: true})
	}
}

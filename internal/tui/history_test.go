package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// roll is a team whose members have a screen of 20 lines, of which each has a history above it.
type roll struct {
	fuzzed
	rollMu sync.Mutex
	lines  int // written so far
	reads  int // of the history
	fails  bool
	shows  []func(view.Frame)
}

func (x *roll) history() (all []string) {
	for i := range x.lines {
		all = append(all, fmt.Sprintf("\x1b[32mline %d\x1b[0m", i+1))
	}
	return all
}

func (x *roll) Screen(ctx context.Context, _ string, each func(view.Frame)) error {
	x.rollMu.Lock()
	x.shows = append(x.shows, each)
	all := x.history()
	x.rollMu.Unlock()
	each(view.Frame{Lines: append(slices.Clone(all[len(all)-20:]), "", ""), At: epoch})
	<-ctx.Done()
	return nil
}

// write has members write lines. Whoever has asked for a screen is told: a request that was withdrawn at once may be
// the last to get here.
func (x *roll) write(n int) {
	x.rollMu.Lock()
	x.lines += n
	all, shows := x.history(), slices.Clone(x.shows)
	x.rollMu.Unlock()
	for _, show := range shows {
		show(view.Frame{Lines: all[len(all)-20:], At: epoch})
	}
}

func (x *roll) History(context.Context, string) ([]string, error) {
	x.rollMu.Lock()
	defer x.rollMu.Unlock()
	if x.reads++; x.fails {
		return nil, team.Errorf(team.CodeUnavailable, "it does not answer")
	}
	return x.history(), nil
}

func (x *roll) readTimes() int {
	x.rollMu.Lock()
	defer x.rollMu.Unlock()
	return x.reads
}

// TestReadBack checks that each key for it reads back what a member's terminal keeps, that new output does not
// move that, that the history is read only when it is asked for, and the way to what the screen shows now.
func TestReadBack(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"ctrl-u", "pgup", "g", "k", "wheel-up"} {
		for _, out := range []string{"G", "end", "esc s"} {
			x := &roll{lines: 100}
			s := newOnPaper(t, x, x)
			s.selects("member:worker-2")
			s.presses("s")
			s.shows(" line 100 ")
			x.write(1)
			s.shows(" line 101 ")
			if n := x.readTimes(); n != 0 {
				t.Fatalf("a screen at rest has read the history %d times", n)
			}
			if key == "wheel-up" {
				s.event(term.Event{Kind: term.Mouse, Key: key, At: s.now})
			} else {
				s.types(key)
			}
			s.shows("screen, history, ")
			before := s.look(0)
			if strings.Contains(before, " line 101 ") || key == "g" != strings.Contains(before, " line 1 ") {
				t.Errorf("%s shows\n%s", key, before)
			}
			x.write(7)
			for range 2 { // the frame, and all that it brings
				(<-s.changes)(s.m)
				if after := s.look(0); after != before {
					t.Errorf("new output has moved it: %s\n%s", key, after)
				}
				x.write(1)
			}
			if n := x.readTimes(); n != 1 {
				t.Errorf("%s has read the history %d times", key, n)
			}
			s.presses(strings.Fields(out)...)
			s.shows("screen, live")
			s.shows(" line 110 ")
		}
	}
}

// TestReadBackToTheEnd checks that moving down to the end leads back to what the screen shows now.
func TestReadBackToTheEnd(t *testing.T) {
	t.Parallel()
	x := &roll{lines: 100}
	s := newOnPaper(t, x, x)
	s.selects("member:worker-2")
	s.presses("s")
	s.shows(" line 100 ")
	s.presses("ctrl-u")
	s.shows("history, 13 lines below")
	s.presses("j")
	s.shows("history, 12 lines below")
	s.presses("ctrl-d")
	s.shows("screen, live")

	x.rollMu.Lock()
	x.fails = true
	x.rollMu.Unlock()
	s.presses("g")
	s.shows("the history cannot be read: it does not answer")
	s.shows("screen, live")
}

// TestSearchBack checks that a search looks through the history, first for what is in sight and then for the
// newest line, and that it goes on from there.
func TestSearchBack(t *testing.T) {
	t.Parallel()
	x := &roll{lines: 100}
	s := newOnPaper(t, x, x)
	s.selects("member:worker-2")
	s.presses("s")
	s.shows(" line 100 ")
	s.presses("/", "l", "i", "n", "e", " ", "2", "7")
	s.shows("›line 27 ")
	s.presses("enter", "n")
	s.shows("›line 27 ")
	s.presses("esc")
	s.shows("screen, history")
	s.presses("G")
	s.shows("screen, live")
	s.presses("/", "9", "enter")
	s.shows("›line 99 ")
	s.shows(" line 100 ") // what is in sight does not move
	s.presses("N")
	s.shows("›line 79 ")
	if x.readTimes() > 2 {
		t.Errorf("the history was read %d times", x.readTimes())
	}
	s.presses("esc", "G", "/", "x", "y")
	s.shows("nothing has xy")
}

// TestUntilSame checks that a history ends where the lines end that are in sight.
func TestUntilSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lines, shown, want string }{
		{"a b c d", "c d", "a b c d"},
		{"a b c d e", "c d", "a b c d"},
		{"a b a b c", "a b", "a b a b"},
		{"a b c d e", "x d", "a b c d e"},
		{"a", "a b", "a"},
		{"a b", "", "a b"},
		{"", "a", ""},
	} {
		if got := untilSame(strings.Fields(c.lines), strings.Fields(c.shown)); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q until %q is %q", c.lines, c.shown, got)
		}
	}
}

package tui

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// theater is a team whose members have screens. A screen ends when end is called for its member.
type theater struct {
	fuzzed
	stages sync.Map // of *stage by member
}

// stage is the screen of a member, the nth of it; ended is closed when it ends.
type stage struct {
	nth   int
	ended chan struct{}
}

func (x *theater) Screen(ctx context.Context, name string, each func(view.Frame)) error {
	s := &stage{nth: 1, ended: make(chan struct{})}
	if before, ok := x.stages.Load(name); ok {
		s.nth += before.(*stage).nth
	}
	x.stages.Store(name, s)
	each(view.Frame{Lines: []string{fmt.Sprintf("prompt %d of %s", s.nth, name)}, At: epoch})
	select {
	case <-ctx.Done():
		return nil
	case <-s.ended:
		return team.Errorf(team.CodeConflict, "%s is not running (backoff)", name)
	}
}

// end ends the screen of a member.
func (x *theater) end(name string) {
	s, _ := x.stages.Load(name)
	close(s.(*stage).ended)
}

// presses types keys, each after the one before was shown.
func (s *onPaper) presses(keys ...string) {
	s.Helper()
	for _, k := range keys {
		s.types(k)
	}
}

// selects moves down until a row is selected.
func (s *onPaper) selects(id string) {
	s.Helper()
	for range 100 {
		if s.m.cursor == id {
			return
		}
		s.types("j")
	}
	s.Fatalf("%s cannot be selected", id)
}

// TestWholeScreen checks that each key for it shows the screen of the selected member on the whole terminal
// and follows it, that its keys act on that member, and that Esc returns to the row.
func TestWholeScreen(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"s", "z", "enter"} {
		x := &theater{}
		s := newOnPaper(t, x, x)
		s.selects("member:worker-2")
		s.presses(key)
		s.shows(" of worker-2")
		s.shows("worker-2  screen, live")
		s.presses("m")
		s.shows("message worker-2: what to tell it")
		s.presses("esc")
		s.presses("o")
		s.shows("teamctl attach worker-2")
		s.presses("esc")

		s.apply(func(m *model) { m.snap.Down = ago(time.Minute) })
		if text := s.look(0); strings.Contains(text, "live") || !strings.Contains(text, "worker-2  screen  ? as of ") {
			t.Errorf("without a supervisor:\n%s", text)
		}
		s.apply(func(m *model) { m.snap.Down = time.Time{} })
		s.shows("screen, live")
		s.apply(func(m *model) { m.memberOf("worker-2").State = team.Backoff })
		x.end("worker-2")
		s.shows("worker-2 is not running (backoff)")
		if text := s.look(0); strings.Contains(text, "live") {
			t.Errorf("after its end:\n%s", text)
		}
		s.presses("esc")
		if s.m.at != inTeam || s.m.cursor != "member:worker-2" {
			t.Errorf("Esc leads to %s in %s", s.m.cursor, s.m.at)
		}
	}
}

// TestWholeScreenAndBack checks that Esc returns to the place and the row from which a screen was opened, also
// with a log between them.
func TestWholeScreenAndBack(t *testing.T) {
	t.Parallel()
	x := &theater{}
	s := newOnPaper(t, x, x)
	at := func(want place, row string) {
		t.Helper()
		if s.m.at != want || row != "" && s.m.cursor != row {
			t.Errorf("at %s in %s, want %s in %s", s.m.cursor, s.m.at, row, want)
		}
	}
	s.presses("2")
	s.selects("task:101")
	s.presses("s")
	s.shows(" of worker-2")
	s.presses("L")
	at(inLog, "")
	s.presses("s")
	s.shows(" of worker-2")
	s.presses("esc")
	at(inTasks, "task:101")
	s.presses("enter")
	at(inLog, "")
	s.presses("s", "L", "esc")
	at(inTasks, "task:101")
	s.presses("3", "s", "esc")
	at(inNeeds, needID(s.m.snap.Needs[0]))
}

// TestScreenAgain checks that the screen of a member that has ended is followed again once the member runs
// again, and not before, in its place beside the team and on the whole terminal.
func TestScreenAgain(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{nil, {"s"}} {
		x := &theater{}
		s := newOnPaper(t, x, x)
		s.selects("member:worker-2")
		s.presses(keys...)
		s.shows("prompt 1 of worker-2")
		is := func(state team.Observed, since time.Time) {
			s.apply(func(m *model) {
				for i := range m.snap.Members {
					if x := &m.snap.Members[i]; x.Name == "worker-2" {
						x.State, x.Since = state, since
					}
				}
			})
		}
		x.end("worker-2")
		s.shows("worker-2 is not running (backoff)")
		is(team.Backoff, ago(time.Minute))
		s.look(time.Second)
		s.shows("worker-2 is not running (backoff)")
		is(team.Running, ago(time.Second))
		s.shows("prompt 2 of worker-2")

		is(team.Running, epoch) // it is known before the end is
		s.look(0)
		x.end("worker-2")
		s.shows("prompt 3 of worker-2")

		s.apply(func(m *model) { m.snap.Down = ago(time.Minute) })
		s.look(0)
		x.end("worker-2")
		s.shows("worker-2 is not running (backoff)")
		s.apply(func(m *model) { m.snap.Down = time.Time{} })
		s.shows("prompt 4 of worker-2")
	}
}

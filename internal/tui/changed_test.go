package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// strict is a team that accepts an answer only if it names the current text of the request.
type strict struct{ fuzzed }

func (s *strict) Do(ctx context.Context, d view.Deed) (view.Done, error) {
	if r, _ := s.Request(ctx, d.Approval); d.Seen != r.Seen() {
		return view.Done{}, team.Errorf(team.CodeConflict, "it has changed since it was shown: no answer was given")
	}
	_, err := s.fuzzed.Do(ctx, d)
	return view.Done{Said: "the answer is given"}, err
}

// onPaper is a screen that a test draws.
type onPaper struct {
	*testing.T
	*run
	now time.Time
}

func newOnPaper(t *testing.T, home view.Home, of view.Team) *onPaper {
	m := shownOf(crowd(8), 100, 30)
	m.request = map[int64]view.Request{}
	ctx, cancel := context.WithCancel(t.Context())
	s := &onPaper{t, &run{
		ui: &UI{Home: home}, m: m, term: &paper{100, 30}, ctx: ctx, teamCtx: ctx, team: of, stopTeam: func() {}, changes: make(chan func(*model), 64),
		running: map[string]bool{}, again: map[string]doing{}, gaze: newGaze(), crash: make(chan any, 1),
	}, epoch}
	t.Cleanup(func() {
		cancel()
		s.leaveTeam()
		s.all.Wait()
	})
	return s
}

// look draws the screen a moment later.
func (s *onPaper) look(later time.Duration) string {
	s.now = s.now.Add(later)
	s.draw(s.now)
	s.guard.painted(paint{s.frameID, s.now})
	return view.Clean(strings.Join(s.frame.lines, "\n"))
}

// shows takes in changes until the screen has a text.
func (s *onPaper) shows(want string) {
	s.Helper()
	for text := s.look(0); !strings.Contains(text, want); text = s.look(0) {
		select {
		case change := <-s.changes:
			s.apply(change)
		case <-time.After(5 * time.Minute):
			s.Fatalf("no %q in\n%s", want, text)
		}
	}
}

// types types a key, and waits until the screen has confirmed it.
func (s *onPaper) types(key string) {
	s.event(term.Event{Kind: term.Key, Key: key, At: s.now})
	s.look(2 * burst)
}

// TestChangedBetween checks two screens that show a request while it changes: a screen that shows the old
// text does not answer it, and can answer after it has shown the new text for long enough.
func TestChangedBetween(t *testing.T) {
	t.Parallel()
	machine := &strict{fuzzed{request: view.Request{Kind: view.NeedPermission, State: "pending", Member: "worker-1", Tool: "Bash", Command: "make deploy"}}}
	answered := func(want int) {
		t.Helper()
		machine.mu.Lock()
		defer machine.mu.Unlock()
		if len(machine.answered) != want {
			t.Fatalf("answered %+v; want %d", machine.answered, want)
		}
	}
	one, two := newOnPaper(t, machine, machine), newOnPaper(t, machine, machine)
	for _, s := range []*onPaper{one, two} {
		s.shows("make deploy")
		s.look(unread)
	}
	machine.mu.Lock()
	machine.request.Command = "rm -rf build"
	changed := machine.request
	machine.mu.Unlock()
	changed.ID = one.m.approval()
	one.m.request[changed.ID] = changed
	one.shows("rm -rf build")
	one.types("a")
	answered(0)
	one.shows("had not been on the screen for long enough")

	two.look(0)
	two.types("a")
	two.shows("it has changed since it was shown")
	answered(0)
	two.m.request[changed.ID] = changed
	two.shows("rm -rf build")
	two.look(unread + burst)
	two.types("a")
	two.shows("the answer is given")
	answered(1)
	if d := machine.answered[0]; d.Action != "approve" || d.Seen != changed.Seen() {
		t.Errorf("%+v", d)
	}
}

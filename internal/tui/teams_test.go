package tui

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// several is a machine with teams whose list is told, or fails, as a test wants it.
type several struct {
	fuzzed
	mu    sync.Mutex
	done  []view.Deed
	lists chan []view.Glance // what is told next; nil for a failure
	hold  chan struct{}      // if set, an action waits for it
}

func (s *several) Teams(ctx context.Context, _ <-chan bool, each func([]view.Glance)) error {
	for {
		select {
		case list := <-s.lists:
			if list == nil {
				return errors.New("list teams: input/output error")
			}
			each(list)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *several) Open(context.Context, string) (view.Team, error) { return s, nil }

func (s *several) Do(_ context.Context, d view.Deed) (view.Done, error) {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, d)
	return view.Done{Said: "task 2 is added"}, nil
}

func (s *several) deeds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.done)
}

// TestTeamsHaveNoActions checks that no key, menu or palette of the list of teams acts on the team that
// was left, and that the result of an action which comes there names its team.
func TestTeamsHaveNoActions(t *testing.T) {
	t.Parallel()
	machine := &several{lists: make(chan []view.Glance, 1), hold: make(chan struct{})}
	s := newOnPaper(t, machine, machine)
	s.m.name = "demo"
	s.types("t")
	s.event(term.Event{Kind: term.Paste, Text: "for demo", At: s.now})
	s.types("enter")
	s.types("esc")
	machine.lists <- []view.Glance{{Team: "demo"}, {Team: "second"}}
	s.shows("TEAMS 2")
	close(machine.hold)
	s.shows("team demo: task 2 is added")
	s.types("j")
	for _, key := range []string{"t", "M", "a", "m", s.m.keys.first("menu"), "1", "2", "3", "4", "5", "6", "7"} {
		s.m.toast = ""
		s.types(key)
		if text := s.look(0); !strings.Contains(text, "no team is open") || s.m.at != inTeams {
			t.Errorf("after %s:\n%s", key, text)
		}
		s.event(term.Event{Kind: term.Paste, Text: "for second", At: s.now})
	}
	for _, a := range view.Actions() {
		s.begin(a, term.Event{Key: "enter", At: s.now}, "")
		if s.m.over.kind != noOverlay {
			t.Fatalf("%s asks in the list of teams", a.ID)
		}
	}
	for _, c := range s.m.choices(true) {
		if c.command == "" {
			t.Errorf("the list of teams offers %s", c.title)
		}
	}
	s.look(time.Second)
	if n := machine.deeds(); n != 1 {
		t.Errorf("%d actions; want 1: %+v", n, machine.done)
	}
}

// TestTeamsRecover checks that the list of teams keeps what was known when it cannot be read, with its
// age, does not report that there is no team, and is read again.
func TestTeamsRecover(t *testing.T) {
	t.Parallel()
	machine := &several{lists: make(chan []view.Glance, 1)}
	s := newOnPaper(t, machine, machine)
	s.ui.Start = &bare{}
	s.goTo(inTeams)
	machine.lists <- nil // before anything is known
	s.shows("the teams cannot be read: list teams: input/output error")
	machine.lists <- []view.Glance{{Team: "demo", Needs: 1, Done: 2, Total: 5}, {Team: "second"}}
	s.shows("!1 2/5")
	if text := s.look(0); strings.Contains(text, "as of") || strings.Contains(text, "? !1") {
		t.Errorf("current facts are shown as old:\n%s", text)
	}
	machine.lists <- nil
	s.shows("list teams: input/output error")
	text := s.look(0)
	if !strings.Contains(text, "as of ") || !strings.Contains(text, "? !1 2/5") {
		t.Errorf("what was known is not shown with its age:\n%s", text)
	}
	machine.lists <- []view.Glance{{Team: "demo", Unread: "the ledger is missing"}, {Team: "second"}}
	s.shows("the ledger is missing")
	text = s.look(0)
	if strings.Contains(text, "input/output error") || !strings.Contains(text, "!1 2/5  the ledger is missing") {
		t.Errorf("a team that cannot be read loses what was known:\n%s", text)
	}
	machine.lists <- []view.Glance{{Team: "demo", Needs: 1, Done: 3, Total: 5}, {Team: "second"}}
	s.shows("!1 3/5")
	if text := s.look(0); strings.Contains(text, "missing") || strings.Contains(text, "FIRST COMMANDS") {
		t.Errorf("after the recovery:\n%s", text)
	}
}

// TestLostFacts checks that members are shown as they were, with a question mark and the time, while the
// team cannot be read.
func TestLostFacts(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(3), 120, 30)
	m.now = epoch.Add(time.Hour)
	m.problem, m.problemAt = "the ledger is missing", epoch
	m.screenOf, m.screen = "worker-1", view.Frame{Lines: []string{"$ make"}}
	for _, s := range m.build() {
		for _, it := range s.items {
			if x := it.on.Member; s.id == "members" && x != nil && !x.State.Terminal() {
				if line := strip(it.line(60)); !strings.HasPrefix(line, "?") || !strings.Contains(line, epoch.Local().Format("15:04")) {
					t.Errorf("row %q of %s", line, x.Name)
				}
			}
		}
	}
	at := "? as of " + epoch.Local().Format("15:04:05")
	if lines := strip(strings.Join(m.memberLines(*m.memberOf("worker-1"), nil, 60, 20), "\n")); !strings.Contains(lines, at) || strings.Contains(lines, "live") {
		t.Errorf("details:\n%s", lines)
	}
}

// torn is a team whose reading panics.
type torn struct{ fuzzed }

func (*torn) Follow(context.Context, func() view.Interest, func(view.Snapshot)) error { panic("boom") }

// TestPanicOfAReader checks that a panic beside the loop, of a read or of the terminal, restores the
// terminal and is recorded in a file whose name is told.
func TestPanicOfAReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		home  view.Home
		crash chan any
	}{
		{"follow", &tornHome{}, make(chan any, 1)},
		{"terminal", &several{}, make(chan any, 1)},
	} {
		u := &UI{Home: c.home, Team: "demo", Report: filepath.Join(t.TempDir(), "panic.txt")}
		if c.name == "terminal" {
			c.crash <- panicked{"boom", []byte("painter")}
		}
		restored := false
		err := u.on(t.Context(), &paper{100, 30}, make(chan term.Event), make(chan paint), func() { restored = true }, c.crash)
		if err == nil || !strings.Contains(err.Error(), u.Report) || !restored {
			t.Errorf("%s: %v, restored %v", c.name, err, restored)
		}
		if text, err := os.ReadFile(u.Report); err != nil || !strings.HasPrefix(string(text), "boom\n") {
			t.Errorf("%s: report %q %v", c.name, text, err)
		}
	}
}

type tornHome struct{ several }

func (*tornHome) Open(context.Context, string) (view.Team, error) { return &torn{}, nil }

// listing is a machine with a list of teams.
type listing struct {
	fuzzed
	list []view.Glance
}

func (s *listing) Teams(_ context.Context, _ <-chan bool, each func([]view.Glance)) error {
	each(s.list)
	return nil
}

// TestNextNeedOfAnotherTeam checks that the key for the next need goes on to the next team that needs the
// person after the last need of this one, and round, and begins at the selected team in the list.
func TestNextNeedOfAnotherTeam(t *testing.T) {
	t.Parallel()
	home := &listing{list: []view.Glance{{Team: "a", Needs: 1}, {Team: "demo", Needs: 2}, {Team: "quiet"}, {Team: "z", Needs: 1}}}
	m := shownOf(sample(), 120, 36)
	r, keys, done := inHand(t, m, home)
	r.ui.Home, r.stopTeam = home, func() {}
	defer func() { r.leaveTeam() }()
	keys("g", ".")
	if at := m.snap.Needs[1]; m.cursor != needID(at) || m.name != "demo" {
		t.Fatalf("the second need: %s, %s", m.name, m.cursor)
	}
	keys(".")
	done()
	if m.name != "z" || m.have {
		t.Fatalf("after the last one: %s", m.name)
	}
	if got := nextTeam(home.list, "z", false); got != "a" {
		t.Errorf("after the last team: %q", got)
	}
	for from, want := range map[string]string{"a": "a", "demo": "demo", "quiet": "z", "z": "z", "gone": "a"} {
		if got := nextTeam(home.list, from, true); got != want {
			t.Errorf("from %s: %q, want %q", from, got, want)
		}
	}
}

// TestTeamsList checks that the list of teams selects the one that was left, and has the cost of each.
func TestTeamsList(t *testing.T) {
	t.Parallel()
	m := shownOf(sample(), 100, 20)
	m.at, m.sections, m.cursor = inTeams, nil, ""
	r, _, _ := inHand(t, m, &fuzzed{})
	r.glances([]view.Glance{{Team: "a", Cost: "$12.40"}, {Team: "demo", Cost: "-", Done: 5, Total: 12}})
	m.refresh()
	if m.cursor != "team:demo" {
		t.Errorf("selected: %s", m.cursor)
	}
	lines := strings.Join(m.draw().lines, "\n")
	for _, want := range []string{"  a     $12.40\n", "› demo       -  5/12\n"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, lines)
		}
	}
	m.cursor = "team:a"
	r.glances(m.teams)
	if m.cursor != "team:a" {
		t.Errorf("after a change: %s", m.cursor)
	}
}

package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// TestHelpInEveryFoot checks that the last line of every place names the key of the help at every size.
func TestHelpInEveryFoot(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{20, 5}, {24, 3}, {40, 10}, {59, 13}, {80, 24}, {120, 36}, {200, 50}} {
		m := shownOf(crowd(8), size[0], size[1])
		for _, at := range []place{inTeam, inTasks, inNeeds, inMail, inChanges, inUsage, inScreen, inTeams, inLog, inPager, inTime} {
			m.at, m.screenOf, m.sections = at, "worker-1", nil
			m.refresh()
			all, _ := m.flat()
			for i := range max(1, len(all)) {
				if len(all) > 0 {
					m.choose(all[i].id)
				}
				if foot := m.foot(false); !strings.HasSuffix(foot, "? help") || view.Width(foot) > size[0] {
					t.Errorf("%v in %s at %s: %q", size, at, m.cursor, foot)
				}
			}
		}
	}
}

// TestKeysOfRows checks which keys a screen of 80 columns names for its rows, and the way to its other lists
// and to the views.
func TestKeysOfRows(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 80, 24)
	for row, want := range map[string][]string{
		"member:worker-2": {" m message  d diff  s screen  o more  r restart", "MEMBERS 8   tab tasks, needs  1-7 views"},
		"task:101":        {"L log", "o more", "   tab needs, members  1-7 views"},
		m.cursor:          {" a approve  x reject  A always allow", "MEMBERS 8   tab members, tasks  1-7 views"},
	} {
		m.choose(row)
		if strings.HasPrefix(row, "task:") {
			m.tab = 2
		}
		shown := text(m.draw())
		for _, w := range want {
			if !strings.Contains(shown, w) {
				t.Errorf("%s: no %q in\n%s", row, w, shown)
			}
		}
		m.tab = 1
	}
	m = reviewed(view.Comment{Name: "3.1", State: "draft", Path: "cart.go", First: 41, Last: 41, Old: true, Text: "keep it"})
	m.cols = 80
	m.enterDiff()
	for _, w := range []string{"c comment", "S send", "n next change", "space reviewed", "M merge"} {
		if foot := m.foot(false); !strings.Contains(foot, w) {
			t.Errorf("in a diff: no %q in %q", w, foot)
		}
	}
}

// TestKeysOfRequest checks that an open request names the keys that do something there.
func TestKeysOfRequest(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 100, 30)
	m.over = overlay{kind: requestOverlay, approval: m.approval()}
	last := func() string {
		lines := m.draw().lines
		return lines[len(lines)-1]
	}
	if got := last(); got != " a approve  x reject  A always allow  e edit, then approve  m message  esc back  s screen  ? help" {
		t.Errorf("%q", got)
	}
	x := m.request[m.over.approval]
	x.Command = strings.Repeat("make all\n", 60)
	m.request[m.over.approval] = x
	if got := last(); !strings.HasSuffix(got, "esc back  ctrl-d more  ? help") {
		t.Errorf("longer than the screen: %q", got)
	}
	x.State = "approved"
	m.request[m.over.approval] = x
	if got := last(); got != " esc back  ctrl-d more" {
		t.Errorf("answered: %q", got)
	}
}

// TestKeysFromARequest checks that the keys of the screen work on an open request, and that those which act
// on the selected row do nothing once that is another one.
func TestKeysFromARequest(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]struct {
		at   place
		over overlayKind
	}{
		"s": {inScreen, noOverlay}, "d": {inChanges, noOverlay}, "4": {inMail, noOverlay},
		"o": {inTeam, choiceOverlay}, ":": {inTeam, paletteOverlay}, "?": {inTeam, helpOverlay}, "Z": {inTeam, choiceOverlay},
		"y": {inTeam, requestOverlay}, "ctrl-l": {inTeam, requestOverlay}, "ctrl-z": {inTeam, requestOverlay},
	} {
		s := newOnPaper(t, nil, &fuzzed{request: view.Request{Kind: view.NeedPermission, State: "pending", Member: "worker-1", Command: "make"}})
		s.look(0)
		s.types("enter")
		if s.types(key); s.m.at != want.at || s.m.over.kind != want.over || s.m.bad {
			t.Errorf("%s: at %s with overlay %d, %q; want %s, %d", key, s.m.at, s.m.over.kind, s.m.toast, want.at, want.over)
		}
	}
	s := newOnPaper(t, nil, &fuzzed{})
	s.look(0)
	s.types("enter")
	if !s.event(term.Event{Kind: term.Key, Key: "q", At: s.now}) {
		t.Error("q does not leave the screen")
	}
	for _, key := range []string{"s", "o", "Z"} {
		s.m.over.approval = 99
		if s.types(key); s.m.at != inTeam || s.m.over.kind != requestOverlay || !strings.Contains(s.m.toast, "no longer in the list") {
			t.Errorf("%s on another row: at %s with overlay %d, %q", key, s.m.at, s.m.over.kind, s.m.toast)
		}
	}
}

// TestNothingToOpen checks that a key which the selected row has nothing for says so.
func TestNothingToOpen(t *testing.T) {
	t.Parallel()
	for key, row := range map[string]string{"s": "task:101", "d": "task:101", "L": "member:worker-5"} {
		snap := crowd(8)
		for i := range snap.Tasks {
			snap.Tasks[i].Owner = ""
		}
		s := newOnPaper(t, nil, &fuzzed{})
		s.m.snap = snap
		s.m.refresh()
		s.m.choose(row)
		s.look(0)
		if s.types(key); s.m.at != inTeam || !strings.HasPrefix(s.m.toast, "nothing was done: the row is of no ") {
			t.Errorf("%s on %s: at %s, %q", key, row, s.m.at, s.m.toast)
		}
		s.m.at = inTeams
		if s.types(key); !strings.Contains(s.m.toast, "no team is open") {
			t.Errorf("%s in the list of teams: %q", key, s.m.toast)
		}
	}
}

// TestSaid checks that results and receipts leave the keys of the row readable, that a receipt moves on
// with its evidence, and that it goes with the next key once it is complete.
func TestSaid(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{100, 30}, {80, 24}, {40, 10}} {
		m := shownOf(crowd(8), size[0], size[1])
		m.sent, m.sentTo, m.receipt = "m1", "worker-1", []view.Receipt{{To: "worker-1", State: team.Mailed, At: epoch}}
		m.say("request 1 is approved", false)
		look := func(said, keys string) {
			t.Helper()
			lines := m.draw().lines
			if n := len(lines); !strings.Contains(lines[n-2], said) || !strings.HasPrefix(lines[n-1], keys) {
				t.Errorf("%v: %q above %q, want %q above %q", size, lines[n-2], lines[n-1], said, keys)
			}
		}
		look("request 1 is approved", " a approve  x reject")
		m.heard()
		look("to worker-1: mailed", " a approve  x reject")
		m.heard()
		m.receipt = []view.Receipt{{To: "worker-1", State: team.Read, At: epoch}}
		look("to worker-1: read", " a approve  x reject")
		m.heard()
		if shown := text(m.draw()); strings.Contains(shown, "to worker-1") {
			t.Errorf("a complete receipt stays:\n%s", shown)
		}
	}
	m := shownOf(crowd(8), 80, 8)
	m.sent, m.sentTo, m.receipt = "m1", "worker-1", []view.Receipt{{To: "worker-1", State: team.Mailed, At: epoch}}
	if foot := m.foot(false); !strings.HasPrefix(foot, " to worker-1: mailed") || !strings.HasSuffix(foot, "? help") {
		t.Errorf("on a few rows: %q", foot)
	}
	m.heard()
	if foot := m.foot(false); !strings.HasPrefix(foot, " a approve") {
		t.Errorf("on a few rows, after a key: %q", foot)
	}
}

// library is a team in which one member has changed a file.
type library struct {
	fuzzed
	by string
}

func (l *library) Changes(_ context.Context, member, _ string) (view.Changes, error) {
	c := view.Changes{Member: member}
	if member == l.by {
		c.Patch = cartPatch
	}
	return c, nil
}

// TestChangesOfWhom checks that the place of changes shows those of the selected member, else of the first one
// that has any, and says what to do where none has.
func TestChangesOfWhom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ by, row, want string }{
		{"worker-3", "member:worker-2", "CHANGES of worker-2  0 files"},
		{"worker-3", "member:worker-3", "CHANGES of worker-3  2 files"},
		{"worker-5", "task:10", "CHANGES of worker-5  2 files"},
		{"", "task:10", "no member has changed a file yet: d on a member shows its"},
	} {
		x := &library{by: c.by}
		s := newOnPaper(t, x, x)
		s.selects(c.row)
		s.presses("5")
		s.shows(c.want)
	}
}

// TestNothingToPreview checks that what keeps an action from doing anything is shown whole, a line each.
func TestNothingToPreview(t *testing.T) {
	t.Parallel()
	var reasons []string
	for i := range 40 {
		reasons = append(reasons, fmt.Sprintf("worker-%d. works on task %d", i, i))
	}
	x := &previewer{said: "nothing is ready to be merged\n" + strings.Join(reasons, "\n")}
	s := newOnPaper(t, x, x)
	s.presses("M")
	s.shows("worker-0. works on task 0")
	if !strings.Contains(text(s.frame), "\n nothing is ready to be merged\n worker-0. works on task 0\n") {
		t.Errorf("shown:\n%s", text(s.frame))
	}
	for range 10 {
		s.presses("ctrl-d")
	}
	s.shows("worker-39. works on task 39")
	s.presses("M")
	if s.m.over.kind != noOverlay {
		t.Error("the key does not leave it")
	}
}

type previewer struct {
	fuzzed
	said string
}

func (p *previewer) Do(context.Context, view.Deed) (view.Done, error) {
	return view.Done{Said: p.said}, nil
}

package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

func (d *drawer) Writable(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fails
}

// hanging is a team whose ledger is locked: a draft waits until its context ends, or free is closed.
type hanging struct {
	drawer
	free chan struct{}
}

func (h *hanging) Keep(ctx context.Context, x view.Deed) error {
	<-h.free
	return h.drawer.Keep(ctx, x)
}

// TestTrouble checks that the head of the screen says why nothing can be saved, that a draft stays in memory
// and the screen asks before it is left meanwhile, and that once the cause has gone the draft is saved and
// nothing is said any more.
func TestTrouble(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"the disk is full since 12:00:00: nothing can be saved":     team.Errorf(team.CodeUnavailable, "set draft: database or disk is full").WithReason("disk_full"),
		"the ledger is locked since 12:00:00: nothing can be saved": team.Errorf(team.CodeTimeout, "the ledger is busy").WithReason(team.ReasonBusy),
	} {
		d := &drawer{kept: map[string]string{}, fails: err}
		m := shownOf(crowd(8), 120, 36)
		m.choose("member:worker-2")
		r, keys, done := inHand(t, m, d)
		want = strings.ReplaceAll(want, "12:00:00", epoch.Local().Format("15:04:05"))
		keys("m")
		done()
		keys("h", "i")
		r.rested(m.now.Add(pauseInTyping))
		done()
		if head := m.head(); !strings.Contains(head, want) {
			t.Errorf("%q, want %q", head, want)
		}
		for _, cols := range []int{200, 80, 40, 20} {
			m.cols = cols
			if head := m.head(); view.Width(head) > max(cols, view.Width(" demo")) || cols >= 40 && !strings.Contains(head, strings.Join(strings.Fields(want)[:4], " ")) {
				t.Errorf("%d columns: %q", cols, head)
			}
		}
		m.cols = 120
		keys("esc")
		if keys("q"); m.over.kind != leaveOverlay || !strings.Contains(text(m.draw()), "hi") {
			t.Errorf("it is left without a word:\n%s", text(m.draw()))
		}
		keys("x")
		if got := r.untilTry(); got != troublePause {
			t.Errorf("tried again in %s", got)
		}
		r.tryAgain(m.now)
		if m.trouble.busy {
			t.Error("tried again without a pause")
		}
		m.now = m.now.Add(troublePause)
		r.tryAgain(m.now)
		done()
		if got := r.untilTry(); got != 2*troublePause || m.trouble.words == "" {
			t.Errorf("then in %s, %+v", got, m.trouble)
		}
		d.mu.Lock()
		d.fails = nil
		d.mu.Unlock()
		m.now = m.now.Add(2 * troublePause)
		r.tryAgain(m.now)
		done() // it can be written to
		done() // the draft is
		if d.kept["message worker-2"] != "hi" || len(m.drafts) != 0 || r.untilTry() != 0 || strings.Contains(m.head(), "saved") {
			t.Errorf("after it: kept %v, drafts %v, %q", d.kept, m.drafts, m.head())
		}
		if !r.quit() {
			t.Errorf("it asks for %v", m.drafts)
		}
		r.all.Wait()
	}
}

// TestLeaveWhileLocked checks that the screen asks before it is left while a draft is still being saved.
func TestLeaveWhileLocked(t *testing.T) {
	t.Parallel()
	h := &hanging{drawer{kept: map[string]string{}}, make(chan struct{})}
	m := shownOf(crowd(8), 120, 36)
	m.choose("member:worker-2")
	r, keys, done := inHand(t, m, h)
	keys("m")
	done()
	keys("h", "i", "esc")
	if r.quit() || m.over.kind != leaveOverlay || m.drafts["demo: message worker-2"] != "hi" {
		t.Errorf("it is left without a word: %v", m.drafts)
	}
	if !r.overKey(term.Event{Kind: term.Key, Key: "q", At: m.now}, "") {
		t.Error("it is not left after the question")
	}
	close(h.free)
	done()
	r.all.Wait()
}

// reviewer is a team that keeps comments.
type reviewer struct{ drawer }

func (*reviewer) Do(_ context.Context, d view.Deed) (view.Done, error) {
	if d.Comment == "" && d.Text != "" {
		return view.Done{Comment: "1.1"}, nil
	}
	return view.Done{Comment: d.Comment}, nil
}

// TestLeaveDeletedTeam checks that the screen asks before it is left with a text or a comment that was typed in
// it and that only a ledger has kept that is gone, and does not ask while the ledger is there, or once the text
// was sent or deleted.
func TestLeaveDeletedTeam(t *testing.T) {
	t.Parallel()
	gone := team.Errorf(team.CodeNotFound, "Team %q does not exist", "demo").WithReason(team.ReasonTeamNotFound)
	comment := view.Deed{Action: "comment", Member: "worker-2", Path: "a.go", Lines: "3"}
	for _, c := range []struct {
		name  string
		types func(r *run, keys func(...string), done func())
		asks  string
	}{
		{"message", func(r *run, keys func(...string), done func()) {
			keys("m")
			done()
			keys("h", "i", "esc")
			done()
		}, "demo: message worker-2: hi"},
		{"comment", func(r *run, keys func(...string), done func()) {
			r.write(&writing{team: "demo", deed: comment, comment: true, text: "why?"})
			done()
		}, "demo: comment on worker-2, 1.1: why?"},
		{"sent message", func(r *run, keys func(...string), done func()) {
			keys("m")
			done()
			keys("h", "i", "enter")
			done()
		}, ""},
		{"sent comment", func(r *run, keys func(...string), done func()) {
			r.write(&writing{team: "demo", deed: comment, comment: true, text: "why?"})
			done()
			r.do(view.Deed{Action: "send-review", Member: "worker-2"})
			done()
		}, ""},
		{"deleted comment", func(r *run, keys func(...string), done func()) {
			r.write(&writing{team: "demo", deed: comment, comment: true, text: "why?"})
			done()
			d := comment
			d.Comment = "1.1"
			r.write(&writing{team: "demo", deed: d, comment: true, text: " ", saved: "why?"})
			done()
		}, ""},
	} {
		m := shownOf(crowd(8), 120, 36)
		m.choose("member:worker-2")
		r, keys, done := inHand(t, m, &reviewer{drawer{kept: map[string]string{}}})
		c.types(r, keys, done)
		if !r.quit() {
			t.Errorf("%s: it asks although the ledger is there", c.name)
		}
		m.loseTeam("demo", gone, m.now)
		if m.problem == "" || !m.lost["demo"] {
			t.Fatalf("%s: %q, lost %v", c.name, m.problem, m.lost)
		}
		left := r.quit()
		if asked := m.over.kind == leaveOverlay && strings.Contains(text(m.draw()), c.asks); asked != (c.asks != "") || left != (c.asks == "") {
			t.Errorf("%s: left is %v at\n%s", c.name, left, text(m.draw()))
		}
		if c.asks != "" && !r.overKey(term.Event{Kind: term.Key, Key: "q", At: m.now}, "") {
			t.Errorf("%s: it is not left after the question", c.name)
		}
	}
}

// unreadable is a machine with a team that can be read only while it has no error.
type unreadable struct {
	fuzzed
	reads chan error
}

func (u *unreadable) Open(context.Context, string) (view.Team, error) { return u, nil }

func (u *unreadable) Follow(ctx context.Context, _ func() view.Interest, each func(view.Snapshot)) error {
	for {
		select {
		case err := <-u.reads:
			if err != nil {
				return err
			}
			each(crowd(8))
		case <-ctx.Done():
			return nil
		}
	}
}

// TestUnreadable checks that the head says at every width of 20 columns and more that and since when a team
// cannot be read, that its facts are marked, and that all is as before once it can be read.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	u := &unreadable{reads: make(chan error)}
	s := newOnPaper(t, u, u)
	s.enterTeam("demo")
	u.reads <- nil
	s.shows("! 4 NEED YOU")
	u.reads <- team.Errorf(team.CodeUnavailable, "read the board of a team whose directory has a very long name indeed, so that no line has room for it: %w", context.DeadlineExceeded).WithReason(team.ReasonBusy)
	s.shows("the ledger is locked")
	for _, cols := range []int{200, 80, 40, 20} {
		s.m.cols = cols
		head := s.m.head()
		if at := "? " + s.m.problemAt.Local().Format("15:04:05"); view.Width(head) > cols || cols < 60 && !strings.Contains(head, at) || cols >= 80 && !strings.Contains(head, "the ledger is locked") {
			t.Errorf("%d columns: %q", cols, head)
		}
	}
	s.m.cols = 120
	if x, _ := s.m.sign(*s.m.memberOf("worker-2")); strip(x) != "?" {
		t.Errorf("worker-2 is marked %q", x)
	}
	u.reads <- nil
	s.shows("! 4 NEED YOU")
	for s.m.problem != "" {
		s.apply(<-s.changes)
	}
	if head := s.m.head(); strings.Contains(head, "locked") || strings.Contains(head, "?") {
		t.Errorf("afterwards: %q", head)
	}
	s.m.problem, s.m.problemIs = errors.New("x").Error(), ""
	s.m.problemAt = time.Unix(0, 0)
	if head := s.m.head(); !strings.Contains(head, "as of "+time.Unix(0, 0).Local().Format("15:04:05")+": x") {
		t.Errorf("another error: %q", head)
	}
}

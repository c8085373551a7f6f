package tui

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/openpty"
	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// still is a machine with one team that never changes. It counts how often the screen is asked for its
// interest.
type still struct{ view.Team }

func (still) Teams(context.Context, <-chan bool, func([]view.Glance)) error { return nil }

func (s still) Open(context.Context, string) (view.Team, error) { return s, nil }

func (still) Follow(ctx context.Context, _ func() view.Interest, each func(view.Snapshot)) error {
	s := crowd(0)
	each(s)
	<-ctx.Done()
	return nil
}

// TestRest checks that a screen is painted once for each change and not while nothing changes, and that q ends
// it and restores the terminal.
func TestRest(t *testing.T) {
	t.Parallel()
	master, tty, err := openpty.Open()
	if err != nil {
		t.Skipf("no pty: %v", err)
	}
	path, err := filepath.EvalSymlinks("/proc/self/fd/" + strconv.Itoa(int(tty.Fd())))
	if err != nil {
		t.Skipf("no name of the pty: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		u := &UI{Home: still{}, Team: "demo", Terminal: path}
		ended <- u.Run(t.Context())
	}()
	writes := make(chan int, 1024)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1<<16)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			select {
			case writes <- n:
			default:
			}
		}
	}()
	quiet := 0
	for n := 0; quiet < 2; n++ {
		rest := time.NewTimer(time.Second)
		select {
		case <-writes:
			quiet = 0
			if n > 500 {
				t.Fatal("the screen does not come to rest")
			}
		case <-rest.C:
			quiet++
		}
		rest.Stop()
	}
	if _, err := master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, f := range []*os.File{tty, master} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	<-done
}

// TestAgesTogether checks that ages which change at different moments of a second wake the screen once in it, and
// only while it has the focus.
func TestAgesTogether(t *testing.T) {
	t.Parallel()
	m := newModel()
	second := time.Unix(1_800_000_000, 0)
	r := &run{m: m, gaze: newGaze()}
	for _, began := range []time.Duration{200, 500, 900} {
		m.snap.Tasks = append(m.snap.Tasks, view.Task{ID: "1", Status: team.TaskInProgress, Began: second.Add(-5*time.Second + began*time.Millisecond)})
	}
	for now, want := range map[time.Duration]time.Duration{0: time.Second, 100 * time.Millisecond: 900 * time.Millisecond, 950 * time.Millisecond: 1050 * time.Millisecond} {
		m.now = second.Add(now)
		if got := r.due(); got != want {
			t.Errorf("at %v: %v; want %v", now, got, want)
		}
	}
	r.gaze.focused = false
	if got := r.due(); got != 0 {
		t.Errorf("without the focus: %v", got)
	}
}

// TestAgesOfRows checks that the screen is drawn when the age in a member's row changes, whatever the age is of.
func TestAgesOfRows(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		member view.Member
		down   time.Time
		want   time.Duration
	}{
		"working": {member: view.Member{State: team.Running, Activity: team.Working, ActiveSince: ago(90 * time.Second)}, want: 30 * time.Second},
		"stopped": {member: view.Member{State: team.Exited, Since: ago(100 * time.Second), ActiveSince: ago(90 * time.Minute)}, want: 20 * time.Second},
		"failed":  {member: view.Member{State: team.Failed, Since: ago(10 * time.Second)}, want: time.Second},
		"stalled": {member: view.Member{State: team.Running, Activity: team.Working, ActiveSince: ago(90 * time.Minute), StalledSince: ago(110 * time.Second)}, want: 10 * time.Second},
		"old":     {member: view.Member{State: team.Running, Activity: team.Idle, ActiveSince: ago(5 * time.Second)}, down: ago(115 * time.Second), want: 5 * time.Second},
	} {
		m := newModel()
		m.now, m.snap.Down = now, c.down
		c.member.Name = "ann"
		m.snap.Members = []view.Member{c.member}
		r := &run{m: m, gaze: newGaze()}
		if got := r.due(); got != c.want {
			t.Errorf("%s: drawn after %v, want %v", name, got, c.want)
		}
	}
}

// TestRowsStay checks that a new picture of a member's screen and a move of the selection leave the rows
// as they were made, and that everything else makes them anew.
func TestRowsStay(t *testing.T) {
	t.Parallel()
	s := newOnPaper(t, nil, still{})
	m := s.m
	s.look(0)
	made := func(what string, want bool, change func()) {
		t.Helper()
		before := &m.sections[0]
		change()
		s.look(0)
		if got := before != &m.sections[0]; got != want {
			t.Errorf("%s: rows made anew: %v, want %v", what, got, want)
		}
	}
	made("nothing", false, func() {})
	made("a picture", false, func() { s.apply(func(m *model) { m.showScreen(view.Frame{}) }) })
	made("down", false, func() { s.event(term.Event{Kind: term.Key, Key: "j", At: s.now}) })
	made("another key", true, func() { s.event(term.Event{Kind: term.Key, Key: "g", At: s.now}) })
	made("facts", true, func() { s.apply(func(*model) {}) })
	made("facts, then a picture", true, func() {
		s.apply(func(*model) {})
		s.apply(func(m *model) { m.showScreen(view.Frame{}) })
	})
}

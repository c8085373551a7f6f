package look

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// patience is how long a test waits for what has to happen.
const patience = 5 * time.Minute

// someTeams are teams with processes that pass for their supervisors.
type someTeams struct {
	*testing.T
	env    *tool.Env
	frozen atomic.Pointer[team.Layout] // the team whose supervisor does not answer
	thaw   chan struct{}
}

func newTeams(t *testing.T) *someTeams {
	t.Helper()
	s := &someTeams{T: t, thaw: make(chan struct{})}
	s.env = &tool.Env{Home: team.Home{Dir: t.TempDir()}, Ping: func(ctx context.Context, l team.Layout) error {
		if f := s.frozen.Load(); f == nil || f.Dir != l.Dir {
			return nil
		}
		select {
		case <-s.thaw:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	return s
}

// create creates a team with a member that is to run, and a process that passes for the supervisor.
// end ends that.
func (s *someTeams) create(key string) (l team.Layout, end func()) {
	s.Helper()
	if _, err := s.env.TeamCreate(s.Context(), tool.Person(), tool.TeamCreateIn{TeamName: key}); err != nil {
		s.Fatal(err)
	}
	t, err := s.env.Open(s.Context(), key)
	if err != nil {
		s.Fatal(err)
	}
	_, _, err = t.Ledger.AddMember(s.Context(), ledger.Member{
		SessionKey: "agent:ann", Name: "ann", Role: team.RoleExecutor, Desired: team.WantRunning, Observed: team.Running, Activity: team.ActivityUnknown,
	}, true)
	if err != nil {
		s.Fatal(err)
	}
	if err := t.Close(); err != nil {
		s.Fatal(err)
	}
	l = t.Layout
	held, ok, err := filelock.TryLock(l.SupervisorLock())
	if err != nil || !ok {
		s.Fatal(ok, err)
	}
	c := exec.Command("sleep", "10000")
	if err := c.Start(); err != nil {
		s.Fatal(err)
	}
	done := false
	end = func() {
		if done {
			return
		}
		done = true
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
		_ = held.Unlock()
	}
	s.Cleanup(end)
	if err := os.WriteFile(l.SupervisorPID(), []byte(strconv.Itoa(c.Process.Pid)+"\n"+team.SupervisorAdopted+"\n"), 0o600); err != nil {
		s.Fatal(err)
	}
	return l, end
}

// until waits for a change after which a team is as ok wants it.
func (s *someTeams) until(w *Teams, key, what string, ok func(view.Glance) bool) {
	s.Helper()
	limit := time.After(patience)
	for {
		select {
		case <-w.Changes():
		case <-limit:
			s.Fatalf("no change after which %s %s", key, what)
		}
		keys, err := s.env.Keys()
		if err != nil {
			s.Fatal(err)
		}
		g := view.Glance{Unread: "gone"}
		if slices.Contains(keys, key) {
			t, err := s.env.Open(s.Context(), key)
			if err != nil {
				s.Fatal(err)
			}
			if g, err = Glance(s.Context(), t, w.Silence(key)); err != nil {
				s.Fatal(err)
			}
			if err := t.Close(); err != nil {
				s.Fatal(err)
			}
		}
		if ok(g) {
			return
		}
	}
}

// TestTeamsSupervisors checks that the list of teams changes when a supervisor stops or continues to
// answer and when it ends, also that of a team which was made anew under its name, and that the
// supervisors of other teams do not matter.
func TestTeamsSupervisors(t *testing.T) {
	t.Parallel()
	s := newTeams(t)
	a, endA := s.create("a")
	s.create("b")
	s.frozen.Store(&a)
	w, err := FollowTeams(t.Context(), s.env, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.until(w, "a", "is silent", func(g view.Glance) bool { return g.Silent && !g.Down.IsZero() && g.Needs == 1 })
	if since := w.Silence("b"); !since.IsZero() {
		t.Errorf("b is silent since %v", since)
	}
	s.frozen.Store(nil)
	close(s.thaw)
	s.until(w, "a", "is maintained", func(g view.Glance) bool { return !g.Silent && g.Down.IsZero() && g.Needs == 0 })
	endA()
	s.until(w, "a", "is down", func(g view.Glance) bool { return !g.Silent && !g.Down.IsZero() && g.Needs == 1 })

	if err := os.RemoveAll(a.Dir); err != nil {
		t.Fatal(err)
	}
	s.until(w, "a", "is gone", func(g view.Glance) bool { return g.Unread != "" })
	_, endA = s.create("a")
	s.until(w, "a", "is maintained again", func(g view.Glance) bool { return g.Down.IsZero() })
	endA()
	s.until(w, "a", "is down again", func(g view.Glance) bool { return !g.Down.IsZero() })
}

// TestTeamsReplaced checks that a team which was replaced by another one of its name is looked for
// again.
func TestTeamsReplaced(t *testing.T) {
	t.Parallel()
	s := newTeams(t)
	a, end := s.create("a")
	f := &followed{looks: make(chan bool, 1)}
	w := &Teams{env: s.env, out: make(chan struct{}, 1), came: make(chan struct{}, 1), teams: map[string]*followed{"a": f}}
	w.done.Go(func() { w.follow(t.Context(), "a", f) })
	defer w.done.Wait()
	<-w.out // it is followed
	end()
	if err := os.RemoveAll(a.Dir); err != nil {
		t.Fatal(err)
	}
	s.create("a")
	select {
	case <-w.came:
	case <-time.After(patience):
		t.Fatal("the other team is not looked for")
	}
}

// TestTeamsLooks checks that each team is told whether somebody looks, new teams included, and the
// newest word counts.
func TestTeamsLooks(t *testing.T) {
	t.Parallel()
	one := &followed{looks: make(chan bool, 1)}
	w := &Teams{teams: map[string]*followed{"one": one}}
	w.tell(true)
	w.tell(false)
	if here := <-one.looks; here {
		t.Error("the newest word is not that nobody looks")
	}
	s := newTeams(t)
	s.create("two")
	w.env, w.out, w.came = s.env, make(chan struct{}, 1), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.look(ctx)
	w.mu.Lock()
	two := w.teams["two"]
	w.mu.Unlock()
	w.done.Wait()
	if two == nil || len(two.looks) != 1 || <-two.looks {
		t.Errorf("a new team is not told that nobody looks: %+v", two)
	}
}

// TestPulsesAskTogether checks that at rest a process wakes once a minute for the supervisors of all
// teams, and not at all while nobody looks.
func TestPulsesAskTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const teams = 10
		ctx, cancel := context.WithCancel(t.Context())
		asked := make(chan time.Time, 1000)
		var pulses []*pulse
		var looks []chan bool
		for range teams {
			c := make(chan bool, 1)
			p := newPulse(func(context.Context) error { asked <- time.Now(); return nil }, c, true, time.Now())
			pulses, looks = append(pulses, p), append(looks, c)
			go func() {
				defer close(p.done)
				p.run(ctx)
			}()
			time.Sleep(7 * time.Millisecond) //nolint:forbidigo // in a bubble: the time is not real
		}
		after := func(d time.Duration) (questions int, moments map[time.Time]bool) {
			for len(asked) > 0 {
				<-asked
			}
			time.Sleep(d) //nolint:forbidigo // in a bubble: the time is not real
			synctest.Wait()
			moments = map[time.Time]bool{}
			for questions = len(asked); len(asked) > 0; {
				moments[<-asked] = true
			}
			return questions, moments
		}
		after(askFirst)
		if n, moments := after(10 * askMost); n != 10*teams || len(moments) != 10 {
			t.Errorf("%d questions at %d moments in ten minutes", n, len(moments))
		}
		for _, c := range looks {
			c <- false
		}
		if n, _ := after(time.Hour); n != 0 {
			t.Errorf("%d questions while nobody looks", n)
		}
		cancel()
		for _, p := range pulses {
			<-p.done
		}
	})
}

// TestTeamsLedgerReturns checks that a ledger that is moved away is waited for, as long as the directory of
// its team is there, and that its team stays in the list.
func TestTeamsLedgerReturns(t *testing.T) {
	t.Parallel()
	s := newTeams(t)
	a, _ := s.create("a")
	w := &Teams{env: s.env, out: make(chan struct{}, 1), came: make(chan struct{}, 1), teams: map[string]*followed{}}
	if w.returns(t.Context(), "a") {
		t.Error("a ledger that is there is waited for")
	}
	away := filepath.Join(t.TempDir(), "ledger.db")
	for _, back := range []bool{true, false} {
		if err := os.Rename(a.Ledger(), away); err != nil {
			t.Fatal(err)
		}
		returned := make(chan bool, 1)
		go func() { returned <- w.returns(t.Context(), "a") }()
		<-w.out // it waits
		if lost := s.env.LostTeams(); !slices.Equal(lost, []string{"a"}) {
			t.Errorf("lost teams %q", lost)
		}
		var err error
		if back {
			err = os.Rename(away, a.Ledger())
		} else {
			err = os.RemoveAll(a.Dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-returned:
			if got != back {
				t.Errorf("returned %v; want %v", got, back)
			}
		case <-time.After(patience):
			t.Fatal("it waits on")
		}
	}
}

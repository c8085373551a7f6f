package services

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeBus is a loop that the test runs: nothing happens but in its methods.
type fakeBus struct {
	*testing.T
	ctx     context.Context
	members []Member
	queue   chan func() // functions for the loop
	timers  map[string]func()
	periods map[string]time.Duration // as they were asked for
	work    sync.WaitGroup
}

func newBus(t *testing.T, members ...ledger.Member) *fakeBus {
	ctx, cancel := context.WithCancel(context.Background())
	b := &fakeBus{T: t, ctx: ctx, queue: make(chan func(), 1000), timers: map[string]func(){}, periods: map[string]time.Duration{}}
	for _, m := range members {
		b.members = append(b.members, Member{Member: m})
	}
	t.Cleanup(func() {
		cancel()
		b.work.Wait()
	})
	return b
}

func (b *fakeBus) Go(_ string, f func(context.Context) func()) {
	b.work.Go(func() {
		if then := f(b.ctx); then != nil {
			b.queue <- then
		}
	})
}

func (b *fakeBus) After(name string, d time.Duration, f func()) {
	delete(b.timers, name)
	if d > 0 {
		b.timers[name], b.periods[name] = f, d
	}
}

func (b *fakeBus) Armed(name string) bool { return b.timers[name] != nil }

func (b *fakeBus) Send(_ string, f func()) bool {
	b.queue <- f
	return true
}

func (b *fakeBus) Members() []Member { return slices.Clone(b.members) }

func (b *fakeBus) Find(name string) (Member, bool) {
	for _, m := range b.members {
		if m.Name == name || m.SessionKey == name {
			return m, true
		}
	}
	return Member{}, false
}

// fire runs a timer that has to be armed.
func (b *fakeBus) fire(name string) {
	b.Helper()
	f := b.timers[name]
	if f == nil {
		b.Fatalf("timer %q is not armed", name)
	}
	delete(b.timers, name)
	f()
}

// next runs one function of the loop.
func (b *fakeBus) next() {
	b.Helper()
	select {
	case f := <-b.queue:
		f()
	case <-time.After(2 * time.Minute):
		b.Fatal("nothing comes back to the loop")
	}
}

// until runs the loop, and every timer as soon as it is armed, until cond holds.
func (b *fakeBus) until(what string, cond func() bool) {
	b.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !cond(); {
		for name := range b.timers {
			b.fire(name)
			break
		}
		select {
		case f := <-b.queue:
			f()
		case <-tick.C:
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s: it never happens", what)
		}
	}
}

// newTeam is a team with a ledger of its own, and members that run.
func newTeam(t *testing.T, names ...string) (Team, []ledger.Member) {
	t.Helper()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	for _, d := range []string{l.Inboxes(), l.Locks(), l.Members()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	db, err := ledger.Open(t.Context(), l.Ledger(), ledger.Options{Create: true, LockPath: l.LedgerLock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	led := ledger.New(db, ledger.Direct(db))
	row, err := led.CreateTeam(t.Context(), ledger.TeamRow{Key: "t", Name: "t", LeadSession: team.LeadSessionKey("", "t")})
	if err != nil {
		t.Fatal(err)
	}
	var members []ledger.Member
	for _, name := range append([]string{team.LeadName}, names...) {
		m := ledger.Member{SessionKey: team.TeammateSessionKey(name), Name: name, Desired: team.WantRunning, Observed: team.Pending, Spec: team.MemberSpec{Agent: "command", WorktreeMode: "none"}}
		if name == team.LeadName {
			m.SessionKey, m.Role, m.Desired = row.LeadSession, team.RoleLeader, team.WantStopped
		}
		if m, _, err = led.AddMember(t.Context(), m, true); err != nil {
			t.Fatal(err)
		}
		if name != team.LeadName {
			members = append(members, m)
		}
	}
	return Team{Layout: l, Ledger: led, Log: slog.New(slog.DiscardHandler)}, members
}

// start starts a service on a bus; the test's end closes it.
func (b *fakeBus) start(s Service) {
	b.Helper()
	if err := s.Start(b.ctx, b); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	s.Ready()
}

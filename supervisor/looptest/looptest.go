// Package looptest has a loop for tests of services, which runs only inside its methods.
package looptest

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// Bus is a loop that the test drives: it runs only inside its methods.
type Bus struct {
	*testing.T
	List    []loop.Member
	Timers  map[string]func()
	Periods map[string]time.Duration // as passed to After

	ctx   context.Context
	queue chan func() // functions for the loop
	work  sync.WaitGroup
}

// NewBus returns a loop with members. At the end of the test it waits for the work beside it.
func NewBus(t *testing.T, members ...ledger.Member) *Bus {
	ctx, cancel := context.WithCancel(context.Background())
	b := &Bus{T: t, ctx: ctx, queue: make(chan func(), 1000), Timers: map[string]func(){}, Periods: map[string]time.Duration{}}
	for _, m := range members {
		b.List = append(b.List, loop.Member{Member: m})
	}
	t.Cleanup(func() {
		cancel()
		b.work.Wait()
	})
	return b
}

// Go runs f; the returned function is queued for Next or Until.
func (b *Bus) Go(_ string, f func(context.Context) func()) {
	b.work.Go(func() {
		if then := f(b.ctx); then != nil {
			b.queue <- then
		}
	})
}

// Done waits until what Go has started has ended.
func (b *Bus) Done() { b.work.Wait() }

// After arms a timer, which fires only by Fire or Until.
func (b *Bus) After(name string, d time.Duration, f func()) {
	delete(b.Timers, name)
	if d > 0 {
		b.Timers[name], b.Periods[name] = f, d
	}
}

// Armed reports whether a timer is armed.
func (b *Bus) Armed(name string) bool { return b.Timers[name] != nil }

// Send queues f for Next or Until.
func (b *Bus) Send(_ string, f func()) bool {
	b.queue <- f
	return true
}

// Waiting returns the number of functions queued for the loop.
func (b *Bus) Waiting() int { return len(b.queue) }

// Members returns a copy of List.
func (b *Bus) Members() []loop.Member { return slices.Clone(b.List) }

// Look finds a member of List by its session key.
func (b *Bus) Look(session string) (loop.Member, bool) {
	for _, m := range b.List {
		if m.SessionKey == session {
			return m, true
		}
	}
	return loop.Member{}, false
}

// Find finds a member of List by its name or session key.
func (b *Bus) Find(name string) (loop.Member, bool) {
	for _, m := range b.List {
		if m.Name == name || m.SessionKey == name {
			return m, true
		}
	}
	return loop.Member{}, false
}

// Fire runs an armed timer.
func (b *Bus) Fire(name string) {
	b.Helper()
	f := b.Timers[name]
	if f == nil {
		b.Fatalf("timer %q is not armed", name)
	}
	delete(b.Timers, name)
	f()
}

// Next runs one function of the loop.
func (b *Bus) Next() {
	b.Helper()
	select {
	case f := <-b.queue:
		f()
	case <-time.After(2 * time.Minute):
		b.Fatal("nothing comes back to the loop")
	}
}

// Until runs the loop, and every timer as soon as it is armed, until cond holds.
func (b *Bus) Until(what string, cond func() bool) {
	b.Helper()
	b.until(what, cond, true)
}

// Await runs the loop until cond holds. Timers are left to the test.
func (b *Bus) Await(what string, cond func() bool) {
	b.Helper()
	b.until(what, cond, false)
}

func (b *Bus) until(what string, cond func() bool, fire bool) {
	b.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !cond(); {
		if fire {
			for name := range b.Timers {
				b.Fire(name)
				break
			}
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

// NewTeam returns a team with a ledger of its own and running members.
func NewTeam(t *testing.T, names ...string) (loop.Team, []ledger.Member) {
	t.Helper()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	for _, d := range []string{l.Inboxes(), l.Locks(), l.Members()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	db, err := ledger.Open(t.Context(), l.Ledger(), ledger.Options{Create: true, LockPath: l.LedgerLock(), BusyTimeout: 10 * time.Minute})
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
	return loop.Team{Layout: l, Ledger: led, Log: slog.New(slog.DiscardHandler)}, members
}

// StartService starts a service on a bus, and closes it at the end of the test.
func (b *Bus) StartService(s loop.Service) {
	b.Helper()
	if err := s.Start(b.ctx, b); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	s.Ready()
}

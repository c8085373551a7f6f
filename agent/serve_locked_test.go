package agent

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// fails returns each error once for every name.
type fails struct {
	mu   sync.Mutex
	errs []error
	seen map[string]int
}

func (f *fails) next(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	n := f.seen[name]
	if f.seen[name]++; n < len(f.errs) {
		return f.errs[n]
	}
	return nil
}

// unreadable is a ledger of which each kind of read fails at first.
type unreadable struct {
	llm.Sessions
	*fails
}

func (u unreadable) Session(ctx context.Context, key string) (ledger.Session, error) {
	if err := u.next("session"); err != nil {
		return ledger.Session{}, err
	}
	return u.Sessions.Session(ctx, key)
}

func (u unreadable) Entries(ctx context.Context, session string, after int64, limit int) ([]ledger.Entry, error) {
	if err := u.next("entries"); err != nil {
		return nil, err
	}
	return u.Sessions.Entries(ctx, session, after, limit)
}

func (u unreadable) NewestEntry(ctx context.Context, session string, kind ledger.EntryKind) (ledger.Entry, bool, error) {
	if err := u.next("newest entry"); err != nil {
		return ledger.Entry{}, false, err
	}
	return u.Sessions.NewestEntry(ctx, session, kind)
}

// TestLedgerIsReadLater checks that a turn waits for a ledger that cannot be read for a while, instead
// of failing or ending its process, and that it fails with every other error of its setup.
func TestLedgerIsReadLater(t *testing.T) {
	t.Parallel()
	later := []error{
		team.Errorf(team.CodeTimeout, "database is locked").WithReason(team.ReasonBusy),
		team.Errorf(team.CodeUnavailable, "unable to open database file").WithReason(team.ReasonReadonly),
	}
	s := newServed(t)
	f := &fails{errs: later}
	s.reads, s.resolves = unreadable{s.led, f}, func() error { return f.next("resolve") }
	s.ephemeral = func(context.Context) (string, error) { return "", f.next("ephemeral") }
	s.start(ServeIn{First: "you are dev"})
	s.tell("@@say done")
	s.said("done")
	s.rested()
	if jobs := s.turns(); len(jobs) != 1 || jobs[0].State != team.TurnDone || jobs[0].Attempt != 1 {
		t.Errorf("%+v", jobs)
	}
	for _, name := range []string{"session", "entries", "newest entry", "resolve", "ephemeral"} {
		if f.seen[name] < 3 {
			t.Errorf("%s was read %d times", name, f.seen[name])
		}
	}

	s = newServed(t)
	s.resolves = func() error { return team.Errorf(team.CodeUnavailable, "no key for the provider") }
	s.start(ServeIn{First: "you are dev"})
	s.tell("@@say done")
	s.until("the turn to end", func() bool { jobs := s.turns(); return len(jobs) > 0 && jobs[0].State.Ended() })
	if j := s.turns()[0]; j.State != team.TurnFailed || !strings.Contains(j.Reason, "no key") {
		t.Errorf("%s (%s)", j.State, j.Reason)
	}
}

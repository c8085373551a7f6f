package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/team"
)

// envChild makes the test binary run as a child process of a test.
const envChild = "LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(envChild); name != "" {
		if err := children[name](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func ctxFor(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// clock is a ledger's clock that tests advance.
type clock struct{ at time.Time }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

func openAt(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(ctxFor(t), path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// newLedger returns a new ledger with a team, with a Direct writer.
func newLedger(t testing.TB) *Ledger {
	t.Helper()
	db := openAt(t, filepath.Join(t.TempDir(), "ledger.db"))
	l := New(db, Direct(db))
	if _, err := l.CreateTeam(ctxFor(t), TeamRow{Key: "demo", Name: "Demo", LeadSession: "agent:lead:team:demo"}); err != nil {
		t.Fatal(err)
	}
	return l
}

// newTeam is newLedger with a lead and named members; their session keys are "s-<name>".
func newTeam(t testing.TB, names ...string) *Ledger {
	t.Helper()
	l := newLedger(t)
	for _, name := range append([]string{team.LeadName}, names...) {
		if _, _, err := l.AddMember(ctxFor(t), Member{Name: name, SessionKey: "s-" + name}, true); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks the code and the reason of an error.
func refused(t testing.TB, err error, code team.Code, reason string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s/%s", code, reason)
	}
	if team.CodeOf(err) != code || team.ReasonOf(err) != reason {
		t.Fatalf("got %s/%s (%v), want %s/%s", team.CodeOf(err), team.ReasonOf(err), err, code, reason)
	}
}

func sound(t testing.TB, l *Ledger) {
	t.Helper()
	if problems := must[[]string](t)(l.Check(ctxFor(t))); len(problems) > 0 {
		t.Fatalf("the ledger has problems: %v", problems)
	}
}

// sqlRow reads one value, bypassing the ledger.
func sqlRow[T any](t testing.TB, db *DB, q string, args ...any) T {
	t.Helper()
	vs, err := read(ctxFor(t), db, "test", scanOne[T], q, args...)
	if err != nil || len(vs) != 1 {
		t.Fatalf("%s: %d rows, %v", q, len(vs), err)
	}
	return vs[0]
}

// sqlExec writes, bypassing the ledger.
func sqlExec(t testing.TB, db *DB, q string, args ...any) error {
	t.Helper()
	db.turn.token <- struct{}{}
	defer func() { <-db.turn.token }()
	_, err := db.conn.ExecContext(ctxFor(t), q, args...)
	return err
}

func ids(tasks []Task) []string {
	out := make([]string, len(tasks))
	for i, task := range tasks {
		out[i] = task.ID
	}
	return out
}

func ref(task *Task) TaskRef { return TaskRef{task.ID, task.Owner, task.Attempt} }

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func ptr[T any](v T) *T { return &v }

// eventually waits for a condition that another process or goroutine causes.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		}
	}
}

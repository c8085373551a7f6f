package services

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
)

// The log of the ledger is emptied a pause after it has grown; with another process in the way
// the next attempt comes after a rest.
func TestWALWatch(t *testing.T) {
	t.Parallel()
	tm, _ := newTeam(t)
	b := newBus(t)
	w := NewWALWatch(tm, 1, time.Second, time.Minute)
	b.start(w)
	w.Looked(false)
	if b.periods["log"] != time.Second {
		t.Fatalf("armed %v", b.periods)
	}
	held, err := filelock.Lock(t.Context(), tm.Layout.LedgerLock())
	if err != nil {
		t.Fatal(err)
	}
	b.fire("log")
	w.Looked(false)
	if b.Armed("log") {
		t.Error("armed while the log is being emptied")
	}
	b.next()
	if b.periods["log"] != time.Minute || !b.Armed("log") {
		t.Fatalf("after a failure: %v", b.periods)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	b.fire("log") // looks again
	b.fire("log")
	b.next()
	if size, err := tm.Ledger.WALSize(); err != nil || size > 1 || b.Armed("log") {
		t.Errorf("%d bytes, %v; armed %v", size, err, b.Armed("log"))
	}
}

// Copies are made a rest after the end of a run, and a period after a change; none without one.
func TestCopies(t *testing.T) {
	t.Parallel()
	tm, _ := newTeam(t)
	b := newBus(t)
	c := NewCopies(tm, time.Hour, time.Minute)
	b.start(c)
	if b.Armed("copy") || c.Last() {
		t.Error("a copy is due without a change")
	}
	c.Looked(false)
	if d := b.periods["copy"]; d != time.Minute { // a new team
		t.Errorf("due in %s", d)
	}
	c.Event(ledger.Event{What: "run.closed"})
	if d := b.periods["copy"]; d != time.Millisecond {
		t.Errorf("due in %s after a run", d)
	}
	b.fire("copy")
	if !c.Busy() {
		t.Error("a supervisor may leave while it copies")
	}
	c.Looked(false) // meanwhile
	b.next()
	list, err := ledger.Copies(tm.Layout.Copies())
	if err != nil || len(list) != 1 || c.Busy() {
		t.Fatalf("%d copies, %v; busy %v", len(list), err, c.Busy())
	}
	if d := b.periods["copy"]; d < 50*time.Minute {
		t.Errorf("the next is due in %s", d)
	}
	if c.Last() { // the newest is too young
		t.Error("one more at the end")
	}
}

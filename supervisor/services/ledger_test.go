package services

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
)

// The log of the ledger is emptied a pause after it has grown; if another process blocks that, the
// next attempt comes after a rest.
func TestWALWatch(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t)
	b := looptest.NewBus(t)
	w := NewWALWatch(tm, 1, time.Second, time.Minute)
	b.StartService(w)
	w.Looked(false)
	if b.Periods["log"] != time.Second {
		t.Fatalf("armed %v", b.Periods)
	}
	held, err := filelock.Lock(t.Context(), tm.Layout.LedgerLock())
	if err != nil {
		t.Fatal(err)
	}
	b.Fire("log")
	w.Looked(false)
	if b.Armed("log") {
		t.Error("armed while the log is being emptied")
	}
	b.Next()
	if b.Periods["log"] != time.Minute || !b.Armed("log") {
		t.Fatalf("after a failure: %v", b.Periods)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	b.Fire("log") // looks again
	b.Fire("log")
	b.Next()
	if size, err := tm.Ledger.WALSize(); err != nil || size > 1 || b.Armed("log") {
		t.Errorf("%d bytes, %v; armed %v", size, err, b.Armed("log"))
	}
}

// A copy is made a rest after the end of a run, and a period after a change; none without a
// change.
func TestCopies(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t)
	b := looptest.NewBus(t)
	c := NewCopies(tm, time.Hour, time.Minute)
	b.StartService(c)
	if b.Armed("copy") || c.Last() {
		t.Error("a copy is due without a change")
	}
	c.Looked(false)
	if d := b.Periods["copy"]; d != time.Minute { // a new team
		t.Errorf("due in %s", d)
	}
	c.Event(ledger.Event{What: "run.closed"})
	if d := b.Periods["copy"]; d != time.Millisecond {
		t.Errorf("due in %s after a run", d)
	}
	b.Fire("copy")
	if !c.Busy() {
		t.Error("a supervisor may leave while it copies")
	}
	c.Looked(false) // meanwhile
	b.Next()
	list, err := ledger.Copies(tm.Layout.Copies())
	if err != nil || len(list) != 1 || c.Busy() {
		t.Fatalf("%d copies, %v; busy %v", len(list), err, c.Busy())
	}
	if d := b.Periods["copy"]; d < 50*time.Minute {
		t.Errorf("the next is due in %s", d)
	}
	if c.Last() { // the newest is too recent
		t.Error("one more at the end")
	}
}

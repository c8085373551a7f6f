package services

import (
	"os"
	"path/filepath"
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

// A copy whose name is dated after now says nothing about when the next one is due: the clock has been
// set back.
func TestCopyDatedAfterNow(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t)
	if _, err := tm.Ledger.CopyTo(t.Context(), tm.Layout.Copies(), 1); err != nil {
		t.Fatal(err)
	}
	list, err := ledger.Copies(tm.Layout.Copies())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	ahead := filepath.Join(tm.Layout.Copies(), "ledger-"+time.Now().Add(2*time.Hour).UTC().Format("20060102T150405.000Z")+".db")
	if err := os.Rename(list[0].Path, ahead); err != nil {
		t.Fatal(err)
	}
	b := looptest.NewBus(t)
	c := NewCopies(tm, time.Hour, time.Minute)
	b.StartService(c)
	c.Looked(false)
	if d := b.Periods["copy"]; d != time.Minute {
		t.Errorf("due in %s", d)
	}
	if !c.Last() {
		t.Error("none at the end")
	}
	b.Next()
	if list, err = ledger.Copies(tm.Layout.Copies()); err != nil || len(list) != 2 || list[1].Path != ahead {
		t.Errorf("%+v, %v", list, err)
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

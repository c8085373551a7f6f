package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// filledLedger is a ledger that takes a copy many steps.
func filledLedger(t *testing.T) (*Ledger, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := Open(t.Context(), path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	led := New(db, Direct(db))
	if _, err := led.CreateTeam(t.Context(), TeamRow{Key: "t", Name: "t", LeadSession: "lead"}); err != nil {
		t.Fatal(err)
	}
	var batch []NewTask
	for i := range 1200 {
		batch = append(batch, NewTask{Subject: fmt.Sprint("task ", i), Description: strings.Repeat("d", 1000)})
	}
	if _, err := led.CreateTasks(t.Context(), batch, "t"); err != nil {
		t.Fatal(err)
	}
	return led, path
}

// A copy of a ledger that others write to all the time ends, is sound, and has one moment
// of it: tasks are added two at a time.
func TestCopyBesideAWriter(t *testing.T) {
	t.Parallel()
	led, path := filledLedger(t)
	other, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	writer := New(other, Direct(other))
	end, written := make(chan struct{}), make(chan error, 1)
	wrote := make(chan struct{}) // a write, if somebody waits for one
	go func() {
		for {
			select {
			case <-end:
				written <- nil
				return
			default:
			}
			_, err := writer.CreateTasks(t.Context(), []NewTask{{Subject: "a", Description: "d"}, {Subject: "b", Description: "d"}}, "t")
			if err != nil {
				written <- err
				return
			}
			select {
			case wrote <- struct{}{}:
			default:
			}
		}
	}()
	list := make([]Copy, 3)
	for i := range list {
		select {
		case <-wrote: // each copy has more than the one before
		case err := <-written:
			t.Fatal(err)
		}
		if list[i], err = led.CopyTo(t.Context(), filepath.Join(filepath.Dir(path), "copies"), len(list)); err != nil {
			t.Fatal(err)
		}
	}
	close(end)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	var before int
	for _, c := range list {
		if data, err := os.ReadFile(c.Path); err != nil || data[18] != 1 {
			t.Errorf("%s: %v, or it asks for a log", c.Path, err)
		}
		one, err := Open(t.Context(), c.Path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		copied := New(one, nil)
		problems, err := copied.Check(t.Context())
		if err != nil || len(problems) > 0 {
			t.Errorf("not sound: %q, %v", problems, err)
		}
		tasks, err := copied.Tasks(t.Context(), TaskFilter{})
		if err != nil || len(tasks)%2 != 0 || len(tasks) <= before {
			t.Errorf("%d tasks, %d in the copy before: %v", len(tasks), before, err)
		}
		before = len(tasks)
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Pages are copied as they are, so a copy is read once before it counts: of a damaged ledger
// there is none, and those that were made before stay.
func TestDamagedLedgerIsNotCopied(t *testing.T) {
	t.Parallel()
	led, path := filledLedger(t)
	copies := filepath.Join(filepath.Dir(path), "copies")
	good, err := led.CopyTo(t.Context(), copies, 1)
	if err != nil {
		t.Fatal(err)
	}
	ok(t, led.Checkpoint(t.Context()))
	for _, end := range []string{"", "-journal"} { // what a killed process leaves of a copy goes with the next
		left := filepath.Join(copies, ".ledger-123"+end)
		ok(t, os.WriteFile(left, []byte("half"), 0o600))
		ok(t, os.Chtimes(left, time.Time{}, time.Now().Add(-2*unfinishedAge)))
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := int64(bytes.Index(data, []byte("task 600")) / 4096 * 4096)
	if _, err := f.WriteAt(bytes.Repeat([]byte{0x5a}, 4096), page); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := led.CopyTo(t.Context(), copies, 1); !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != reasonCorrupt {
		t.Errorf("the copy of a damaged ledger: %v", err)
	}
	names, err := filepath.Glob(filepath.Join(copies, "*"))
	hidden, herr := filepath.Glob(filepath.Join(copies, ".*"))
	if err != nil || herr != nil || len(names) != 1 || names[0] != good.Path || len(hidden) > 0 {
		said, _ := json.Marshal(append(names, hidden...))
		t.Errorf("the copies are %s, want %s", said, good.Path)
	}
}

package inbox

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// TestMarkTaken: entries are marked only after another program's read of the file as it is, only
// those that are named, and the mark tells from the program's own until that writes the file.
func TestMarkTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(dir, dir, "bob")
	if err != nil {
		t.Fatal(err)
	}
	since := func() bool {
		_, ok := b.ReadSince()
		return ok
	}
	mark := func(ids ...string) int {
		t.Helper()
		set := map[string]bool{}
		for _, id := range ids {
			set[id] = true
		}
		n, err := b.MarkTaken(t.Context(), set, since)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(b.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := mark("1"); n != 0 || since() {
		t.Fatal("marked without a file")
	}
	write(`[{"from":"a","text":"x","read":false,"msg_id":"1"},` + "\n" + `{"from":"a","text":"y","msg_id":"2","read":false},{"from":"a","text":"z","msg_id":"3"}]`)
	long := time.Now().Add(-time.Hour)
	read := func() {
		t.Helper()
		if err := os.Chtimes(b.Path(), long.Add(-time.Hour), long); err != nil { // no two in one tick of the kernel's clock
			t.Fatal(err)
		}
		if _, err := os.ReadFile(b.Path()); err != nil {
			t.Fatal(err)
		}
	}
	if n := mark("1", "2", "3"); n != 0 {
		t.Fatalf("%d were marked before a read", n)
	}
	if read(); !since() {
		t.Skip("this file system records no reads")
	}
	if n := mark("2", "3"); n != 1 || since() {
		t.Fatalf("%d were marked, read since: %v", n, since())
	}
	got, err := b.Look()
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	for i, want := range []struct{ read, taken bool }{{}, {true, true}, {}} {
		if got[i].Read != want.read || got[i].Taken != want.taken {
			t.Errorf("entry %d: read %v, taken %v, want %v", i, got[i].Read, got[i].Taken, want)
		}
	}
	text, err := os.ReadFile(b.Path())
	if err != nil || !strings.Contains(string(text), `"x","read":false,`) {
		t.Errorf("the file is %s (%v)", text, err)
	}
	write(strings.ReplaceAll(string(text), " ", ""))
	if got, err = b.Look(); err != nil || !got[1].Read || got[1].Taken {
		t.Errorf("after the program has written it: %+v (%v)", got, err)
	}
}

// TestLookAtReplaced: a program that replaces its mailbox while a guest opens it is no hostile file:
// the guest looks again.
func TestLookAtReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(dir, dir, "bob")
	if err != nil {
		t.Fatal(err)
	}
	replace := func() error {
		next := b.Path() + ".tmp"
		return errors.Join(os.WriteFile(next, []byte("[]"), 0o600), os.Rename(next, b.Path()))
	}
	if err := replace(); err != nil {
		t.Fatal(err)
	}
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-quit:
				done <- nil
				return
			default:
			}
			if err := replace(); err != nil {
				done <- err
				return
			}
		}
	}()
	whole := 0
	for range 3000 {
		_, err := b.Look()
		if err == nil {
			whole++
		} else if team.ReasonOf(err) != team.ReasonUnsettled {
			t.Error(err)
			break
		}
	}
	close(quit)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if whole == 0 {
		t.Error("it was never whole")
	}
}

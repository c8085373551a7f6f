package inbox

import (
	"context"
	"os"
	"testing"
	"time"
)

// While nothing is unread, reading takes no lock until the file changes.
func TestUnreadTakesNoLockWhileQuiet(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	other := boxIn(t, dir)
	unread := func() int {
		t.Helper()
		got, err := b.Unread(bg(t))
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	// locked reports whether reading wants the lock.
	locked := func() bool {
		t.Helper()
		held, err := other.lockGuard(bg(t))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = held.Unlock() }()
		ended, end := context.WithCancel(bg(t))
		end()
		_, err = b.Unread(ended)
		return err != nil
	}
	// changed sets the time of the last change.
	changed := func(ago time.Duration) {
		t.Helper()
		at := time.Now().Add(-ago)
		if err := os.Chtimes(b.Path(), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if unread(); locked() {
		t.Error("reading a mailbox without a file takes the lock")
	}
	add(t, other, Entry{From: "a", Text: "1"})
	if n := unread(); n != 1 {
		t.Fatalf("%d unread after the first entry", n)
	}
	changed(time.Hour)
	if unread(); !locked() {
		t.Error("reading takes no lock with an entry unread")
	}
	if _, err := b.MarkAllRead(bg(t)); err != nil {
		t.Fatal(err)
	}
	changed(-time.Hour) // it stays recent, however long the test takes
	if unread(); !locked() {
		t.Error("reading trusts the time of a file that has just changed")
	}
	changed(time.Hour)
	if unread(); locked() {
		t.Error("reading takes the lock with nothing unread")
	}
	add(t, other, Entry{From: "a", Text: "2"})
	if n := unread(); n != 1 {
		t.Errorf("%d unread after the second entry", n)
	}
	// Another program replaces the file by one of the same size and time.
	if _, err := b.MarkAllRead(bg(t)); err != nil {
		t.Fatal(err)
	}
	changed(time.Hour)
	unread()
	before, err := os.Stat(b.Path())
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(content(t, b))
	if err := os.WriteFile(b.Path()+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(b.Path()+".new", before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b.Path()+".new", b.Path()); err != nil {
		t.Fatal(err)
	}
	if !locked() {
		t.Error("reading takes no lock with another file in the place")
	}
}

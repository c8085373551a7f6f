package inbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func contextWithin(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

// A program without a lock has truncated the file, or written half of it, and
// continues a moment later: its entries stay, and so does what arrived
// meanwhile.
func TestHalfWrittenFileIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first int // number of bytes in the file at first
		op    func(*Box) error
		want  string
	}{
		"append, empty":    {0, func(b *Box) error { return b.Append(t.Context(), Entry{From: "a", Text: "2"}) }, "1|2"},
		"reconcile, empty": {0, func(b *Box) error { return putBack(b, Entry{From: "a", Text: "2", ID: "x"}) }, "1|2"},
		"append, a half":   {20, func(b *Box) error { return b.Append(t.Context(), Entry{From: "a", Text: "2"}) }, "1|2"},
		"read, a half":     {20, func(b *Box) error { _, err := b.Unread(t.Context()); return err }, "1"},
		"settle, empty": {0, func(b *Box) error {
			return b.Settle(t.Context(), Settling{
				Due:  func() ([]Due, error) { return []Due{{Entry: Entry{From: "a", Text: "2", ID: "x"}}}, nil },
				Note: func([]Due) error { return nil },
			})
		}, "1|2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for !halfWritten(t, c.first, c.op, c.want) {
				t.Log("the other program came too late: once more")
			}
		})
	}
}

// halfWritten is one case. It reports whether the other program continued in time: a busy
// machine may stop it for longer than it is waited for.
func halfWritten(t *testing.T, first int, op func(*Box) error, want string) (played bool) {
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	whole := content(t, b)
	f, err := os.OpenFile(b.Path(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	began := time.Now()
	if err := f.Truncate(int64(first)); err != nil {
		t.Fatal(err)
	}
	before, parked := os.Lstat(b.parked)
	done := make(chan error, 1)
	go func() { done <- op(b) }()
	if parked == nil { // otherwise the lock directory is not moved on this system
		entered(t, b, before.ModTime())
	}
	if _, err := f.WriteAt([]byte(whole), 0); err != nil {
		t.Fatal(err)
	}
	late := time.Since(began) > moment
	err = <-done
	if late { // the file may have been set aside
		return false
	}
	if err != nil {
		t.Error(err)
	}
	if got := textsOf(entries(t, b)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := names(t, b.dir); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
	return true
}

// entered waits until an operation has held the mailbox since it was left at a time.
func entered(t *testing.T, b *Box, left time.Time) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		if now, err := os.Lstat(b.parked); err == nil && now.ModTime().After(left) {
			return
		}
	}
	t.Error("nobody came")
}

// An empty file that stays empty is replaced but kept: what the program that
// truncated it writes later is not lost.
func TestEmptyFileIsKept(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	f, err := os.OpenFile(b.Path(), os.O_RDWR|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := putBack(b, Entry{From: "a", Text: "0", ID: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("late"); err != nil {
		t.Fatal(err)
	}
	add(t, b, Entry{From: "a", Text: "2"})
	if got := textsOf(entries(t, b)); got != "0|2" {
		t.Error(got)
	}
	kept, err := filepath.Glob(b.Path() + ".corrupt-*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %q, %v", kept, err)
	}
	if data, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(data), "late") {
		t.Errorf("kept %q, %v", data, err)
	}
}

// putBack appends an entry that is missing from a mailbox.
func putBack(b *Box, e Entry) error {
	_, err := b.Reconcile(context.Background(), "", []Expected{{Entry: e}}, func(tr []Trace) ([]Entry, error) {
		if tr[0].Stands {
			return nil, nil
		}
		return []Entry{e}, nil
	})
	return err
}

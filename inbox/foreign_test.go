package inbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/mkdirlock"
	"github.com/teamctl/teamctl/team"
)

func TestFreshForeignLockIsObeyed(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	lock := b.Path() + ".lock"
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if err := b.Append(ctx, Entry{From: "a", Text: "2"}); !team.IsCode(err, team.CodeTimeout) {
		t.Errorf("append: %v", err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("the foreign lock is gone: %v", err)
	}
	got := make(chan error, 1)
	go func() { got <- b.Append(bg(t), Entry{From: "a", Text: "3"}) }()
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if got := textsOf(entries(t, b)); got != "1|3" {
		t.Error(got)
	}
	if _, err := os.Stat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("our lock is left: %v", err)
	}
}

func TestAbandonedForeignLock(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	lock := b.Path() + ".lock"
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-11 * time.Second)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	add(t, b, Entry{From: "a", Text: "2"})
	if got := textsOf(entries(t, b)); got != "1|2" {
		t.Error(got)
	}
	if got := names(t, filepath.Join(dir, "inboxes")); len(got) != 1 {
		t.Errorf("directory has %q", got)
	}
}

// A holder that was paused too long finds its lock taken and writes nothing.
func TestRobbedOfTheForeignLock(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	before := content(t, b)
	raw, err := Entry{From: "a", Text: "2"}.encode()
	if err != nil {
		t.Fatal(err)
	}
	lock := b.Path() + ".lock"
	err = b.hold(bg(t), "write to", true, false, func(h *holding) error {
		if err := os.Remove(lock); err != nil {
			return err
		}
		if err := os.Mkdir(lock, 0o755); err != nil {
			return err
		}
		return h.append([][]byte{raw}, true)
	})
	if !team.IsCode(err, team.CodeConflict) || team.ReasonOf(err) != "lock_stolen" {
		t.Errorf("append: %v", err)
	}
	if content(t, b) != before {
		t.Error("the file changed")
	}
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("the thief's lock is gone: %v", err)
	}
}

// A killed teamctl leaves its lock directory. No operation waits for it: the
// holder of the guard knows that its owner is dead.
func TestLockOfAKilledHolder(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	root, err := os.OpenRoot(filepath.Join(dir, "inboxes"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := takeForeign(t.Context(), root, "bob.json", b.parked); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), mkdirlock.Stale/2)
	defer cancel()
	if err := b.Append(ctx, Entry{From: "a", Text: "2"}); err != nil {
		t.Error(err)
	}
	if got := textsOf(entries(t, b)); got != "1|2" {
		t.Error(got)
	}
}

// The directory is the same each time, and it is where foreign clients expect
// it while the mailbox is held. If it was removed, another is made; if
// something else is in its place, the lock works without it.
func TestOurLockDirectoryIsKept(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	lock := b.Path() + ".lock"
	held := func() fs.FileInfo {
		t.Helper()
		var info fs.FileInfo
		if err := b.hold(bg(t), "look at", false, false, func(*holding) (err error) {
			info, err = os.Lstat(lock)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != LockMode || time.Since(info.ModTime()) > mkdirlock.Stale/2 {
			t.Errorf("the lock is %v of %v", info.Mode(), info.ModTime())
		}
		if _, err := os.Lstat(lock); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("our lock is left: %v", err)
		}
		return info
	}
	if first := held(); canMove {
		long := time.Now().Add(-time.Hour)
		if err := os.Chtimes(b.parked, long, long); err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(first, held()) {
			t.Error("the lock directory was made anew")
		}
	}
	for what, prepare := range map[string]func() error{
		"nothing":          func() error { return os.Remove(b.parked) },
		"a file":           func() error { return os.WriteFile(b.parked, nil, 0o600) },
		"a link":           func() error { return os.Symlink(t.TempDir(), b.parked) },
		"a full directory": func() error { return os.MkdirAll(filepath.Join(b.parked, "x"), 0o700) },
	} {
		if err := errors.Join(os.RemoveAll(b.parked), os.Mkdir(b.parked, 0o700), os.RemoveAll(b.parked)); err != nil {
			t.Fatal(err)
		}
		if err := prepare(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(what, err)
		}
		held()
		add(t, b, Entry{From: "a", Text: "2"})
	}
	if got := len(entries(t, b)); got != 5 {
		t.Errorf("%d entries", got)
	}
}

// A directory renamed away that turns out to be another program's fresh lock is
// moved back.
func TestStealingAFreshLockIsUndone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	lock := filepath.Join(dir, "bob.json.lock")
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	seen, err := root.Lstat("bob.json.lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(lock, time.Now(), time.Now()); err != nil { // its holder is alive after all
		t.Fatal(err)
	}
	if err := mkdirlock.Steal(root, "bob.json.lock", seen); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 1 || got[0] != "bob.json.lock" {
		t.Errorf("directory has %q", got)
	}
	if now, err := root.Lstat("bob.json.lock"); err != nil {
		t.Error(err)
	} else if err := mkdirlock.Steal(root, "bob.json.lock", now); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("directory has %q", got)
	}
}

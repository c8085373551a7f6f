package inbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

func TestFreshForeignLockIsObeyed(t *testing.T) {
	for name, opts := range map[string][]Option{"plain": nil, "shared": {WithForeignLock()}} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBox(t, opts...)
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
		})
	}
}

func TestAbandonedForeignLock(t *testing.T) {
	for name, opts := range map[string][]Option{"plain": nil, "shared": {WithForeignLock()}} {
		t.Run(name, func(t *testing.T) {
			b, dir := newBox(t, opts...)
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
			want := 2 // not taken: left to its owners
			if len(opts) > 0 {
				want = 1
			}
			if got := names(t, filepath.Join(dir, "inboxes")); len(got) != want {
				t.Errorf("directory has %q", got)
			}
		})
	}
}

// A holder that was paused for too long finds its lock taken and writes nothing.
func TestRobbedOfTheForeignLock(t *testing.T) {
	b, _ := newBox(t, WithForeignLock())
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
		return h.append(raw)
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

// A teamctl that was killed leaves its lock directory. Nobody waits for it: whoever has
// the guard knows that its owner is dead.
func TestLockOfAKilledHolder(t *testing.T) {
	for name, opts := range map[string][]Option{"plain": nil, "shared": {WithForeignLock()}} {
		t.Run(name, func(t *testing.T) {
			b, dir := newBox(t, opts...)
			add(t, b, Entry{From: "a", Text: "1"})
			root, err := os.OpenRoot(filepath.Join(dir, "inboxes"))
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if _, err := takeForeign(t.Context(), root, "bob.json"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), foreignStale/2)
			defer cancel()
			if err := b.Append(ctx, Entry{From: "a", Text: "2"}); err != nil {
				t.Error(err)
			}
			if got := textsOf(entries(t, b)); got != "1|2" {
				t.Error(got)
			}
		})
	}
}

// What is renamed away and turns out to be a fresh lock of somebody else goes back.
func TestStealingAFreshLockIsUndone(t *testing.T) {
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
	if err := os.Chtimes(lock, time.Now(), time.Now()); err != nil { // its holder lives after all
		t.Fatal(err)
	}
	if err := stealForeign(root, "bob.json.lock", seen); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 1 || got[0] != "bob.json.lock" {
		t.Errorf("directory has %q", got)
	}
	if now, err := root.Lstat("bob.json.lock"); err != nil {
		t.Error(err)
	} else if err := stealForeign(root, "bob.json.lock", now); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("directory has %q", got)
	}
}

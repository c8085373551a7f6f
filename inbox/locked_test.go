package inbox

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nightlyone/lockfile"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

func TestHeldLockTimesOut(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	l, err := filelock.Lock(bg(t), filepath.Join(dir, "locks", "bob.guard"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := b.Append(ctx, Entry{From: "a", Text: "2"}); !team.IsCode(err, team.CodeTimeout) || team.ReasonOf(err) != "mailbox_locked" {
		t.Errorf("append: %v", err)
	}
	if locked, err := filelock.IsHeld(b.guard); !locked || err != nil {
		t.Errorf("locked: %v, %v", locked, err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if locked, err := filelock.IsHeld(b.guard); locked || err != nil {
		t.Errorf("locked: %v, %v", locked, err)
	}
	add(t, b, Entry{From: "a", Text: "3"})
	if got := textsOf(entries(t, b)); got != "1|3" {
		t.Error(got)
	}
}

// owner is the process that holds the mailbox for long, as it shows itself. ok is
// false when there is none, or when a dead one left its name.
func owner(b *Box) (pid int, ok bool, err error) {
	held, err := filelock.IsHeld(b.guard)
	if err != nil || !held {
		return 0, false, err
	}
	lf, err := lockfile.New(b.pid)
	if err != nil {
		return 0, false, err
	}
	p, err := lf.GetOwner()
	if err != nil {
		return 0, false, nil // nobody shows himself, or a dead one does
	}
	pid = p.Pid // Release forgets it
	return pid, true, p.Release()
}

func TestOwnerIsVisibleWhileHeldForLong(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	if pid, ok, err := owner(b); ok || err != nil {
		t.Errorf("nobody holds it: %d, %v, %v", pid, ok, err)
	}
	err := b.hold(bg(t), "test", true, true, func(*holding) error {
		pid, ok, err := owner(b)
		if pid != os.Getpid() || !ok {
			t.Errorf("owner %d, %v", pid, ok)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = b.hold(bg(t), "test", true, false, func(*holding) error {
		if pid, ok, err := owner(b); ok || err != nil {
			t.Errorf("a short hold shows an owner: %d, %v", pid, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{
		"inboxes/.bob.json.tmp-0123456789abcdef", "locks/bob.pid.123456", "locks/bob.pid", "inboxes/bob.json.corrupt-x",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	stale := filepath.Join(dir, "inboxes", ".bob.json.lock.stale-0123456789abcdef")
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(stale, old, old); err != nil {
		t.Fatal(err)
	}
	n, err := Sweep(filepath.Join(dir, "inboxes"), filepath.Join(dir, "locks"), time.Minute)
	if n != 3 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	want := []string{"bob.json", "bob.json.corrupt-x"}
	if diff := cmp.Diff(want, names(t, filepath.Join(dir, "inboxes"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"bob.guard", "bob.last", "bob.lockdir", "bob.pid"}, names(t, filepath.Join(dir, "locks"))); diff != "" {
		t.Error(diff)
	}
	if n, err := Sweep(filepath.Join(dir, "none"), filepath.Join(dir, "none"), 0); n != 0 || err != nil {
		t.Errorf("missing directories: %d, %v", n, err)
	}
}

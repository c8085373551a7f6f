package mkdirlock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExcludes checks that a counter that is read and then written loses no
// step. It is atomic only for the race detector, which does not know the order
// established by a directory.
func TestExcludes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x.json.lock")
	var all sync.WaitGroup
	var n, in atomic.Int32
	for range 8 {
		all.Go(func() {
			for range 20 {
				err := Hold(t.Context(), dir, 0o700, func(held func() error) error {
					if in.Add(1) != 1 {
						t.Error("two hold the lock")
					}
					n.Store(n.Load() + 1)
					in.Add(-1)
					return held()
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := n.Load(); n != 160 {
		t.Errorf("%d steps of 160", n)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock stayed: %v", err)
	}
}

// TestAbandoned checks that a fresh lock of another program is awaited, and an
// old one is taken.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x.lock")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := Hold(ctx, dir, 0o700, func(func() error) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a lock that is held: %v", err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	if err := Hold(t.Context(), dir, 0o700, func(held func() error) error { return held() }); err != nil {
		t.Errorf("an abandoned lock: %v", err)
	}
}

// TestStolen checks that a process that slept while another took the lock does
// not write, and does not release the other's lock.
func TestStolen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x.lock")
	err := Hold(t.Context(), dir, 0o700, func(held func() error) error {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		future := time.Now().Add(time.Second) // the inode number may be the same
		if err := os.Chtimes(dir, future, future); err != nil {
			t.Fatal(err)
		}
		return held()
	})
	if !errors.Is(err, ErrStolen) {
		t.Errorf("%v, want ErrStolen", err)
	}
	if _, err := os.Lstat(dir); err != nil {
		t.Errorf("the thief's lock is gone: %v", err)
	}
}

// TestRefreshed checks that the time of a lock is updated while it is held.
func TestRefreshed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x.lock")
	l := &lock{dir: dir, perm: 0o700}
	if err := l.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-Stale / 2)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.info, err = os.Lstat(dir); err != nil {
		t.Fatal(err)
	}
	l.touch()
	if info, err := os.Lstat(dir); err != nil || time.Since(info.ModTime()) > Stale/4 {
		t.Errorf("not refreshed: %v, %v", info, err)
	}
	if err := l.held(); err != nil {
		t.Error(err)
	}
	if err := l.free(); err != nil {
		t.Error(err)
	}
}

// TestSweep checks that locks left by killed processes are released, but no
// others.
func TestSweep(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	for name, perm := range map[string]os.FileMode{"ours.lock": 0o711, "theirs.lock": 0o755, "ours": 0o711} {
		if err := os.Mkdir(filepath.Join(in, name), perm); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(in, name), perm); err != nil { // regardless of the umask
			t.Fatal(err)
		}
	}
	if err := Sweep(in, 0o711); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(in)
	if err != nil || len(left) != 2 || left[0].Name() != "ours" || left[1].Name() != "theirs.lock" {
		t.Errorf("left: %v (%v)", left, err)
	}
}

package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/teamctl/teamctl/internal/mkdirlock"
	"github.com/teamctl/teamctl/team"
)

// Foreign clients lock a mailbox with a directory next to it (the
// proper-lockfile protocol): mkdir takes the lock and rmdir releases it; a live
// holder refreshes its mtime, and a lock with an mtime older than ten seconds
// is abandoned. teamctl holds it for milliseconds, so it never refreshes it;
// before a write it checks that it still has the lock.
//
// Where the system can rename without replacing, teamctl moves its directory in
// and out: on ext4 a rmdir may cost a millisecond, fifty times the rest of an
// append.

// LockMode distinguishes teamctl's lock directory from foreign ones. The caller
// holds the guard, so a directory with this mode was left by a killed teamctl:
// there is no need to wait until it is stale.
const LockMode fs.FileMode = 0o710

func abandoned(info fs.FileInfo) bool {
	return info.Mode().Perm() == LockMode || time.Since(info.ModTime()) > mkdirlock.Stale
}

type foreignLock struct {
	root   *os.Root
	name   string
	parked string // where the directory came from and returns to; "" if it was made by mkdir
	info   fs.FileInfo
}

func foreignName(file string) string { return file + ".lock" }

// awaitForeign waits until no foreign client holds the mailbox. One may arrive
// a moment later; a program that shares a mailbox has to take the lock.
func awaitForeign(ctx context.Context, root *os.Root, file string) error {
	for {
		info, err := root.Lstat(foreignName(file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := isLockDir(info); err != nil {
			return err
		}
		if abandoned(info) {
			return nil
		}
		if err := shortly(ctx); err != nil {
			return err
		}
	}
}

// takeForeign takes the lock directory of a mailbox file. The caller holds the
// guard, and therefore owns the directory parked between two holds.
func takeForeign(ctx context.Context, root *os.Root, file, parked string) (*foreignLock, error) {
	name := foreignName(file)
	for {
		l, err := putForeign(root, name, parked)
		if !errors.Is(err, fs.ErrExist) {
			return l, err
		}
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := isLockDir(info); err != nil {
			return nil, err
		}
		if abandoned(info) {
			if err := mkdirlock.Steal(root, name, info); err != nil {
				return nil, err
			}
			continue
		}
		if err := shortly(ctx); err != nil {
			return nil, err
		}
	}
}

// putForeign moves teamctl's lock directory into place. The error is
// fs.ErrExist if there already is one.
func putForeign(root *os.Root, name, parked string) (*foreignLock, error) {
	err := freshen(parked)
	if err == nil {
		err = moveIn(root, name, parked)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		parked, err = "", root.Mkdir(name, LockMode)
	}
	if err != nil {
		return nil, err
	}
	info, err := root.Lstat(name)
	if err == nil && info.Mode().Perm() != LockMode { // reduced by the umask
		err = root.Chmod(name, LockMode)
	}
	if err != nil {
		return nil, err
	}
	return &foreignLock{root: root, name: name, parked: parked, info: info}, nil
}

// freshen creates the parked directory if necessary and sets its time to now.
// It returns errors.ErrUnsupported if it cannot be used.
func freshen(parked string) error {
	if !canMove {
		return errors.ErrUnsupported
	}
	info, err := os.Lstat(parked)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first time, or stolen
		return os.Mkdir(parked, LockMode)
	case err != nil:
		return err
	case !info.IsDir():
		return errors.ErrUnsupported
	}
	now := time.Now()
	return os.Chtimes(parked, now, now)
}

func (l *foreignLock) check() error {
	now, err := l.root.Lstat(l.name)
	if err != nil || !mkdirlock.Same(now, l.info) {
		return team.Errorf(team.CodeConflict, "another program took over the lock %s", l.name).
			WithReason(team.ReasonLockStolen).WithHint("try again")
	}
	return nil
}

// release releases the lock if teamctl still has it. A stolen lock is not an
// error here: every write was checked, and the new holder's lock is not
// touched.
func (l *foreignLock) release() error {
	if l.check() != nil {
		return nil
	}
	if l.parked != "" && moveOut(l.root, l.name, l.parked) == nil {
		return nil
	}
	err := l.root.Remove(l.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func isLockDir(info fs.FileInfo) error {
	if info.IsDir() {
		return nil
	}
	return team.Errorf(team.CodeDenied, "refuse the lock %s: it is %v, not a directory", info.Name(), info.Mode()).
		WithReason(team.ReasonHostileFile).WithHint("inspect it, then move it away")
}

func shortly(ctx context.Context) error { return pause(ctx, 0) }

// pause is shortly, but waits at least for the given time.
func pause(ctx context.Context, least time.Duration) error {
	t := time.NewTimer(max(2*time.Millisecond+rand.N(8*time.Millisecond), least))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a foreign lock: %w", ctx.Err())
	}
}

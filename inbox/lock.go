package inbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nightlyone/lockfile"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// lockWait limits the wait for a lock if the caller's context has no deadline.
// A mailbox is held for milliseconds, so a longer wait is a fault to report.
const lockWait = 30 * time.Second

// hold runs do under the locks of the mailbox. verb names the operation in
// errors. create makes missing directories; without it a missing directory is
// an empty mailbox and do does not run. long makes the owner visible.
func (b *Box) hold(ctx context.Context, verb string, create, long bool, do func(*holding) error) error {
	return b.holdIf(ctx, verb, create, long, nil, do)
}

// holdIf is hold on condition that first, which runs under the guard alone,
// returns true. Both run again if do returns errAgain, which it does before it
// changes anything.
func (b *Box) holdIf(ctx context.Context, verb string, create, long bool, first func() (bool, error), do func(*holding) error) (err error) {
	defer func() { err = b.explain(verb, err) }()
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lockWait)
		defer cancel()
	}
	_, err = os.Lstat(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil
		}
		err = makeDir(b.dir)
	}
	if err != nil {
		return err
	}
	for since := time.Now(); ; {
		err = b.holdOnce(ctx, since, create, long, first, do)
		if !errors.Is(err, errAgain) {
			return err
		}
		// An attempt takes all locks, so they become rarer the longer the file is not at rest.
		if err := pause(ctx, min(time.Since(since)/4, moment/10)); err != nil {
			return err
		}
	}
}

// holdOnce is one attempt of holdIf, or errAgain; since is when the operation
// began.
func (b *Box) holdOnce(ctx context.Context, since time.Time, create, long bool, first func() (bool, error), do func(*holding) error) (err error) {
	guard, err := b.lockGuard(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard.Unlock()) }()
	if first != nil {
		if ok, err := first(); err != nil || !ok {
			return err
		}
	}
	if long {
		defer b.showOwner()()
	}
	root, err := b.openDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	h := &holding{box: b, root: root, name: b.name, since: since}
	h.shared, err = b.lockShared(ctx, root)
	switch {
	case h.shared != nil:
		defer func() { err = errors.Join(err, h.shared.Unlock()) }()
	case err == nil:
		h.unshared = true
	case noRoom(err) && !create: // reading must still work
	default:
		return err
	}
	h.foreign, err = takeForeign(ctx, root, b.name, b.parked)
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, h.foreign.release()) }()
	case noRoom(err) && !create: // a foreign client cannot create its directory either, and reading must still work
		if err := awaitForeign(ctx, root, b.name); err != nil {
			return err
		}
	default:
		return err
	}
	return do(h)
}

// noRoom reports whether nothing can be created next to the mailboxes.
func noRoom(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (b *Box) lockGuard(ctx context.Context) (*filelock.Held, error) { return lockFile(ctx, b.guard) }

// LockReader takes the lock of readers that mark entries as read only after
// forwarding them: two of them must not forward the same message. It locks
// nothing else; the mailbox can be written and read meanwhile.
func (b *Box) LockReader(ctx context.Context) (*filelock.Held, error) { return lockFile(ctx, b.reader) }

// lockFile locks a file, and creates its directory if it is missing.
func lockFile(ctx context.Context, path string) (*filelock.Held, error) {
	l, err := filelock.Lock(ctx, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return l, err
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return filelock.Lock(ctx, path)
}

// makeDir creates only the last directory of a path: a message must not
// recreate the directory of a deleted team.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// explain turns a failure into the coded error that a caller gets.
func (b *Box) explain(verb string, err error) error {
	var corrupt *CorruptError
	var coded *team.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &corrupt):
		return err
	case errors.As(err, &coded):
		return team.Errorf(coded.Code, "%s %s's mailbox: %w", verb, b.agent, err).
			WithReason(coded.Reason).WithHint(coded.Hint)
	case errors.Is(err, context.DeadlineExceeded):
		return team.Errorf(team.CodeTimeout, "%s %s's mailbox: it is locked by another program: %w", verb, b.agent, err).
			WithReason(team.ReasonMailboxLocked).WithHint("run \"teamctl doctor\" to see its holder")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return team.Errorf(team.CodeNotFound, "%s %s's mailbox: %w", verb, b.agent, err)
	}
	return team.Errorf(team.CodeUnavailable, "%s %s's mailbox: %w", verb, b.agent, err).
		WithReason(team.ReasonMailboxUnavailable)
}

// showOwner records the holder of a long lock in the .pid file and returns a
// function that removes it. The file is for people: flock decides, so a failure
// here changes nothing, and a file left by a kill -9 is taken over.
func (b *Box) showOwner() (hide func()) {
	lf, err := lockfile.New(b.pid)
	if err != nil {
		return func() {}
	}
	if err := lf.TryLock(); err != nil {
		return func() {}
	}
	return func() { _ = lf.Unlock() }
}

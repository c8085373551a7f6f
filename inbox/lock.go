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

// lockWait bounds the wait for a lock when the caller's context has no deadline.
// A mailbox is held for milliseconds, so a longer wait is a fault to be reported.
const lockWait = 30 * time.Second

// hold runs do under the locks of the mailbox. verb says in errors what was being
// done. create makes the directories; without it a missing one is an empty mailbox
// and do does not run. long makes the owner visible.
func (b *Box) hold(ctx context.Context, verb string, create, long bool, do func(*holding) error) error {
	return b.holdIf(ctx, verb, create, long, nil, do)
}

// holdIf is hold if first, which is asked under the guard alone, says so. Both are run
// again when do returns errAgain, which it does before it has changed anything.
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
		if err := shortly(ctx); err != nil {
			return err
		}
	}
}

// holdOnce is holdIf, or errAgain; since is when the operation began.
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
	case noRoom(err) && !create: // reading must go on
	default:
		return err
	}
	h.foreign, err = takeForeign(ctx, root, b.name, b.parked)
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, h.foreign.release()) }()
	case noRoom(err) && !create: // for a foreign client's directory neither, and reading must go on
		if err := awaitForeign(ctx, root, b.name); err != nil {
			return err
		}
	default:
		return err
	}
	return do(h)
}

// noRoom reports that nothing can be made where the mailboxes are.
func noRoom(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (b *Box) lockGuard(ctx context.Context) (*filelock.Held, error) { return lockFile(ctx, b.guard) }

// LockReader takes the lock of readers that mark what they have read only after they have
// passed it on: two of them must not pass on the same message. It locks nothing else; the
// mailbox is written and read meanwhile.
func (b *Box) LockReader(ctx context.Context) (*filelock.Held, error) { return lockFile(ctx, b.reader) }

// lockFile locks a file and makes its directory where that is missing.
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

// makeDir makes the last directory of a path only: a message must not bring back
// the directory of a team that was deleted.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// explain turns a failure into the coded error that a caller sees.
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
			WithReason("mailbox_locked").WithHint("see who holds it with \"teamctl doctor\"")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return team.Errorf(team.CodeNotFound, "%s %s's mailbox: %w", verb, b.agent, err)
	}
	return team.Errorf(team.CodeUnavailable, "%s %s's mailbox: %w", verb, b.agent, err).
		WithReason("mailbox_unavailable")
}

// showOwner writes who holds the lock for long into the .pid file and returns what
// removes it again. The file is for people: flock is the truth, so a failure here
// changes nothing and a file left by a kill -9 is taken over.
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

// Owner is the process that holds the mailbox for long (a repair, a prune), as it
// shows itself. ok is false when there is none, or when a dead one left its name.
func (b *Box) Owner() (pid int, ok bool, err error) {
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

// IsLocked reports whether a process holds the mailbox's lock in this moment.
func (b *Box) IsLocked() (bool, error) { return filelock.IsHeld(b.guard) }

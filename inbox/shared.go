package inbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/internal/filelock"
)

// sharedName is the lock file of clients that lock all mailboxes of a directory
// at once, by flock, and rewrite a mailbox in place. teamctl never creates it:
// if it is missing there is no such client, and mailboxes stay independent of
// each other.
const sharedName = ".lock"

// errAgain makes holdIf release all locks and repeat the operation: the mailbox
// is not usable at this moment.
var errAgain = errors.New("the mailbox is not ready")

// lockShared takes the shared lock, or returns nil if there is none.
func (b *Box) lockShared(ctx context.Context, root *os.Root) (*filelock.Held, error) {
	if there, err := hasShared(root); err != nil || !there {
		return nil, err
	}
	return filelock.Lock(ctx, filepath.Join(b.dir, sharedName))
}

// hasShared reports whether there is a shared lock. Anything of that name but a
// regular file does not count.
func hasShared(root *os.Root) (bool, error) {
	info, err := root.Lstat(sharedName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular(), err
}

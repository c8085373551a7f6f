package inbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/internal/filelock"
)

// sharedName is the lock file of clients that lock all mailboxes of a directory at once,
// by flock, and rewrite a mailbox in place. Nobody else makes it: where it is missing
// there is no such client, and mailboxes stay independent of each other.
const sharedName = ".lock"

// errAgain makes holdIf release all locks and run the operation once more: the mailbox
// could not be used in this moment.
var errAgain = errors.New("the mailbox is not ready for this")

// lockShared takes the shared lock where there is one. It is nil where there is none.
func (b *Box) lockShared(ctx context.Context, root *os.Root) (*filelock.Held, error) {
	if there, err := hasShared(root); err != nil || !there {
		return nil, err
	}
	return filelock.Lock(ctx, filepath.Join(b.dir, sharedName))
}

// hasShared reports that there is a shared lock. Something else of that name is none.
func hasShared(root *os.Root) (bool, error) {
	info, err := root.Lstat(sharedName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular(), err
}

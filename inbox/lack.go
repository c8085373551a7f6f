package inbox

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// A repaired mailbox may be missing entries that could not be read. A mark next
// to its lock records that until they have been restored, because the process
// that met the damage may be killed first, and the next one sees an intact
// file. Every mark is different: restoring what one repair lost does not remove
// the mark of the next.

// Lacks reports whether entries of the mailbox are missing, and returns the
// mark.
func (b *Box) Lacks() (mark string, lacks bool) {
	text, err := regular.ReadFile(b.lack)
	return string(text), err == nil
}

// Lack marks the mailbox as missing entries and returns the mark; an existing
// mark stays.
func (b *Box) Lack(ctx context.Context) (mark string, err error) {
	err = b.guarded(ctx, "mark", func() error {
		var lacks bool
		if mark, lacks = b.Lacks(); lacks {
			return nil
		}
		mark, err = b.writeLack()
		return err
	})
	return mark, err
}

// Whole removes the mark; it returns false if there is a different mark by now.
func (b *Box) Whole(ctx context.Context, mark string) (ok bool, err error) {
	err = b.guarded(ctx, "mark", func() error {
		now, lacks := b.Lacks()
		if ok = !lacks || now == mark; !ok || !lacks {
			return nil
		}
		if err := os.Remove(b.lack); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	return ok, err
}

// writeLack requires the guard.
func (b *Box) writeLack() (string, error) {
	mark := team.NewUUID()
	return mark, atomicfile.Write(b.lack, []byte(mark), 0o600, true)
}

// guarded runs do while no other teamctl process has the mailbox.
func (b *Box) guarded(ctx context.Context, verb string, do func() error) (err error) {
	defer func() { err = b.explain(verb, err) }()
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lockWait)
		defer cancel()
	}
	guard, err := b.lockGuard(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(), guard.Unlock())
}

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

// A repaired mailbox may lack what could not be read. A mark beside its lock says so
// until whoever has the messages has put them back, for the one who met the damage
// may be killed before, and the next sees a sound file. Every mark is another one:
// who has put back what one repair lost does not take away the mark of the next.

// Lacks reports whether the mailbox lacks entries, with the mark that says so.
func (b *Box) Lacks() (mark string, lacks bool) {
	text, err := regular.ReadFile(b.lack)
	return string(text), err == nil
}

// Lack says that the mailbox lacks entries and returns the mark of it; one that
// stands already stays.
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

// Whole takes the mark away; false when another one stands by now.
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

// writeLack needs the guard.
func (b *Box) writeLack() (string, error) {
	mark := team.NewUUID()
	return mark, atomicfile.Write(b.lack, []byte(mark), 0o600, true)
}

// guarded runs do while no other process of ours has the mailbox.
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

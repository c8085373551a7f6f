package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
)

// A renamed member keeps its mailbox file. Under the locks of both names the file is linked
// to the new name, the ledger is updated, and the old name is removed. At every moment the
// name in the ledger is that of the complete file: a killed process leaves one name too many
// at most, which no other member gets before Moved.

// MoveTo links the file to the name of another mailbox, calls commit, which updates the
// ledger, and removes the old name, all under the locks of both. If it fails or is killed
// before commit returns, the mailbox is unchanged and MoveTo can be called again.
//
// An existing file of the other name belongs to no member and is kept under a third name.
func (b *Box) MoveTo(ctx context.Context, to *Box, commit func() error) error {
	return b.holdBoth(ctx, to, func(h *holding) error {
		if err := h.linkAs(to); err != nil {
			return err
		}
		if err := commit(); err != nil {
			return err
		}
		return h.unlinkFor(to)
	})
}

// Moved completes a MoveTo that was killed after its commit. It can be called again.
func (b *Box) Moved(ctx context.Context, to *Box) error {
	return b.holdBoth(ctx, to, func(h *holding) error { return h.unlinkFor(to) })
}

// Unmove removes the second name after a MoveTo whose commit failed.
func (b *Box) Unmove(ctx context.Context, to *Box) error {
	return b.holdBoth(ctx, to, func(h *holding) error {
		same, err := h.sameAs(to.name)
		if err != nil {
			return err
		}
		if !same {
			return h.aside(to.name)
		}
		return h.root.Remove(to.name)
	})
}

// holdBoth is hold with the locks of the other mailbox too. No other operation holds two
// mailboxes, and a team has one rename in progress at a time.
func (b *Box) holdBoth(ctx context.Context, to *Box, do func(*holding) error) error {
	return b.hold(ctx, "rename", true, false, func(h *holding) (err error) {
		guard, err := to.lockGuard(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, guard.Unlock()) }()
		foreign, err := takeForeign(ctx, h.root, to.name, to.parked)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, foreign.release()) }()
		return do(h)
	})
}

// linkAs links the file to its second name. Before the commit no member uses that name, so
// an existing file is moved aside: a leftover of a former member, or of an interrupted
// MoveTo after which the mailbox was replaced.
func (h *holding) linkAs(to *Box) error {
	if _, lacks := h.box.Lacks(); lacks {
		if _, err := to.writeLack(); err != nil {
			return err
		}
	}
	same, err := h.sameAs(to.name)
	if err != nil || same {
		return err
	}
	if err := h.aside(to.name); err != nil {
		return err
	}
	if err := os.Remove(to.last); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = h.root.Link(h.name, to.name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	data, info, lerr := h.load() // on a file system without links
	if lerr != nil || info == nil {
		return errors.Join(err, lerr)
	}
	return atomicfile.WriteRoot(h.root, to.name, data, 0o600, true)
}

// unlinkFor removes the first name. If the second name is missing, there was no file
// before the commit or another program removed it: the file is renamed. A file that differs
// from that of the second name was put there by another program and is moved aside.
func (h *holding) unlinkFor(to *Box) error {
	if err := os.Rename(h.box.last, to.last); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(h.box.lack); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	same, err := h.sameAs(to.name)
	if err != nil {
		return err
	}
	if _, lerr := h.root.Lstat(to.name); errors.Is(lerr, fs.ErrNotExist) {
		err = h.root.Rename(h.name, to.name)
	} else if same {
		err = h.root.Remove(h.name)
	} else {
		err = h.aside(h.name)
	}
	if errors.Is(err, fs.ErrNotExist) { // there was no file, or the name is removed already
		err = nil
	}
	return errors.Join(err, atomicfile.SyncDir(h.root))
}

// sameAs reports whether the file and the one called name are the same or have equal content.
func (h *holding) sameAs(name string) (bool, error) {
	other := *h
	other.name = name
	data, info, err := h.load()
	if err != nil || info == nil {
		return false, err
	}
	theirs, its, err := other.load()
	if err != nil || its == nil {
		return false, err
	}
	return os.SameFile(info, its) || bytes.Equal(data, theirs), nil
}

// aside renames a file to a name that no mailbox has. A missing file is not an error.
func (h *holding) aside(name string) error {
	if _, err := h.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	stamp := time.Now().UTC().Format("20060102T150405.000000000")
	if err := h.root.Rename(name, fmt.Sprintf("%s.renamed-%s", name, stamp)); err != nil {
		return fmt.Errorf("keep %s aside: %w", name, err)
	}
	return nil
}

// Agent is the name that the mailbox was opened with.
func (b *Box) Agent() string { return b.agent }

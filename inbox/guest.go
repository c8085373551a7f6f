package inbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/team"
)

// The rest of this file is for mailboxes of another program's team, where
// teamctl is a guest. It repairs nothing, because the owner may be writing an
// unreadable file at this moment; and reading takes no lock, because some
// clients drop their write if they find one.

// Look returns the entries, oldest first, without taking a lock. A missing file
// has none. Text that is not a complete mailbox is CodeUnavailable
// (mailbox_unsettled): a write may be in progress.
func (b *Box) Look() (out []Entry, err error) {
	if _, err := os.Lstat(b.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	defer func() { err = b.explain("read", err) }()
	root, err := b.openDir()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	data, _, elems, err := (&holding{box: b, root: root, name: b.name}).settled()
	return decodeAll(data, elems), err
}

// settled reads the file and fails if it is incomplete or being replaced. An
// empty file is being written, since an empty mailbox has brackets.
func (h *holding) settled() ([]byte, fs.FileInfo, []element, error) {
	// Opened for writing, too: who watches for readers (package readwatch) is not told of teamctl.
	data, info, err := h.loadBy(os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		data, info, err = h.load()
	}
	if errors.Is(err, errReplaced) {
		err = team.Errorf(team.CodeUnavailable, "it %w", errReplaced).WithReason(team.ReasonUnsettled)
	}
	if err != nil || info == nil {
		return nil, nil, nil, err
	}
	elems, bad := scanArray(data)
	if bad == nil && len(elems) == 0 && len(data) == 0 {
		bad = &scanError{0, errTruncated}
	}
	if bad != nil {
		return nil, nil, nil, team.Errorf(team.CodeUnavailable, "it is incomplete: %w", bad).WithReason(team.ReasonUnsettled)
	}
	return data, info, elems, nil
}

// Draft creates an empty file next to the mailbox, which AddBy fills and
// renames over it, and returns its name. If the draft still exists after a
// kill, the entries never reached the mailbox.
func (b *Box) Draft() (name string, err error) {
	defer func() { err = b.explain("write to", err) }()
	root, err := b.openDir()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	name = b.name + draftMark + team.NewUUID()
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return name, atomicfile.SyncDir(root)
}

const draftMark = ".tmp.teamctl-"

// Undrafted reports whether a draft has become the mailbox. Otherwise it
// removes the draft, and none of its entries was delivered.
func (b *Box) Undrafted(name string) (delivered bool, err error) {
	defer func() { err = b.explain("write to", err) }()
	root, err := b.openDir()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	err = root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// AddBy adds entries by way of a draft if ok, called with the current entries
// under the lock, returns true. The lock is held for one read and one write of
// the file.
func (b *Box) AddBy(ctx context.Context, draft string, add []Entry, ok func(there []Entry) bool) (added bool, err error) {
	raw := make([][]byte, len(add))
	for i, e := range add {
		if raw[i], err = e.text(); err != nil {
			return false, b.explain("write to", err)
		}
	}
	err = b.hold(ctx, "write to", true, false, func(h *holding) error {
		data, _, elems, err := h.settled()
		if err != nil {
			return err
		}
		if !ok(decodeAll(data, elems)) {
			return nil
		}
		if err := h.fill(draft, append(texts(data, elems), raw...)); err != nil {
			return err
		}
		if err := h.stillHeld(); err != nil {
			return err
		}
		added = true
		if err := h.root.Rename(draft, h.name); err != nil {
			return err
		}
		return atomicfile.SyncDir(h.root)
	})
	return added && err == nil, err
}

// fill writes a mailbox to an existing file.
func (h *holding) fill(name string, elements [][]byte) error {
	text, err := arrayOf(elements)
	if err != nil {
		return err
	}
	f, err := h.root.OpenFile(name, os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	n, err := f.Write(text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// takenMark is the read mark that MarkTaken sets. Programs format the mailbox
// when they write it, which removes the space.
const takenMark = "true "

// ReadSince returns when another program has read the mailbox, if that was after
// the last write to it. It is false where the file system does not record that
// (noatime, other systems).
func (b *Box) ReadSince() (at time.Time, ok bool) {
	info, err := os.Lstat(b.Path())
	if err != nil {
		return time.Time{}, false
	}
	at, ok = accessed(info)
	return at, ok && at.After(info.ModTime())
}

// MarkTaken marks the entries with these ids as read if read, called under the
// lock, reports that another program has read the mailbox since it was last
// written to, and returns how many. That is for programs that take unread
// entries without the lock and mark them later: until then their next look takes
// them again. A program that is reading the file reads it to its end, since it is
// replaced.
func (b *Box) MarkTaken(ctx context.Context, ids map[string]bool, read func() bool) (marked int, err error) {
	err = b.hold(ctx, "write to", false, false, func(h *holding) error {
		data, info, elems, err := h.settled()
		if err != nil || info == nil || !read() {
			return err
		}
		for i, e := range elems {
			if e.obj && !e.done && string(data[e.read.start:e.read.end]) == "false" && ids[decode(data, e, i).ID] {
				copy(data[e.read.start:], takenMark)
				marked++
			}
		}
		if marked == 0 {
			return nil
		}
		return h.replaceText(data, false)
	})
	if err != nil {
		return 0, err
	}
	return marked, nil
}

// Drop removes the entries with these keys (see Entry.Key) from the file.
func (b *Box) Drop(ctx context.Context, keys map[string]bool) error {
	return b.hold(ctx, "write to", false, false, func(h *holding) error {
		data, info, elems, err := h.settled()
		if err != nil || info == nil {
			return err
		}
		kept := make([][]byte, 0, len(elems))
		for i, e := range elems {
			if !e.obj || !keys[decode(data, e, i).Key()] {
				kept = append(kept, data[e.start:e.end])
			}
		}
		if len(kept) == len(elems) {
			return nil
		}
		return h.replace(kept, true)
	})
}

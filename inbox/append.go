package inbox

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/teamctl/teamctl/team"
)

// closing is the end of an array of objects in the file's format. A JSON string
// cannot contain a newline, and a nested object has more indentation, so a torn
// write never ends like this.
const closing = "\n  }\n]"

// Append adds one message. When it returns nil the message is in the file;
// after an error the file is unchanged, except that a *CorruptError reports
// that a damaged file was repaired first. An entry without From is CodeInvalid,
// a text over 1 MiB CodeLimit. An empty Timestamp becomes the current time.
func (b *Box) Append(ctx context.Context, e Entry) error {
	raw, err := e.text()
	if err != nil {
		return b.explain("write to", err)
	}
	return b.hold(ctx, "write to", true, false, func(h *holding) error { return h.append([][]byte{raw}, true) })
}

// ErrGone means that an entry was not appended because the mailbox file is
// missing or empty: another program deleted or truncated it, and a file created
// by the entry would hide the loss. Reconcile creates one.
var ErrGone = errors.New("the mailbox has no file")

// standsIn reports whether an entry of a file has the given id.
func standsIn(data []byte, elems []element, id string) bool {
	// Decode entries only if the id occurs in the text at all. An id that JSON
	// would escape takes the slow path.
	quoted := team.AppendJSONString(nil, id)
	if len(quoted) == len(id)+2 && !bytes.Contains(data, quoted) {
		return false
	}
	for i, e := range elems {
		if e.obj && decode(data, e, i).ID == id {
			return true
		}
	}
	return false
}

// append adds entries; without anew it returns ErrGone if the file is missing
// or empty.
func (h *holding) append(raws [][]byte, anew bool) (err error) {
	f, info, err := h.open(os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		if !anew {
			return ErrGone
		}
		return h.replace(raws, false)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size := info.Size()
	if size == 0 {
		if !anew {
			return h.emptied()
		}
		return h.refill(raws)
	}
	if size >= int64(len(closing)) {
		var tail [len(closing)]byte
		if _, err := f.ReadAt(tail[:], size-int64(len(tail))); err != nil {
			return err
		}
		if string(tail[:]) == closing {
			if err := h.stillHeld(); err != nil {
				return err
			}
			h.follow(info)
			if err := appendInPlace(f, size, raws); err != nil {
				return err
			}
			forgetAccess(h.box.Path())
			return nil
		}
	}
	data, err := readFrom(f, 0, size)
	if err != nil {
		return err
	}
	elems, bad := scanArray(data)
	if bad != nil {
		return h.repair(data, elems, bad)
	}
	return h.replace(append(texts(data, elems), raws...), len(elems) > 0)
}

// emptied returns ErrGone for an empty file that must not be filled, once it
// has been empty for a moment.
func (h *holding) emptied() error {
	if err := h.rested(); err != nil {
		return err
	}
	return ErrGone
}

// refill replaces an empty file, and keeps the old one aside: whatever the
// program that truncated it still writes to it is not lost.
func (h *holding) refill(raws [][]byte) error {
	if err := errors.Join(h.stillHeld(), h.rested()); err != nil {
		return err
	}
	if _, err := h.keepAside(nil); err != nil {
		return err
	}
	return h.replace(raws, false)
}

// appendInPlace inserts entries before the closing bracket with one write. If
// the write fails it restores the old end in the existing blocks, which needs
// no space.
func appendInPlace(f *os.File, size int64, raws [][]byte) error {
	const next, end = ",\n  ", "\n]"
	off := size - int64(len(end))
	n := len(end)
	for _, raw := range raws {
		n += len(next) + len(raw)
	}
	text := make([]byte, 0, n)
	for _, raw := range raws {
		text = append(append(text, next...), raw...)
	}
	text = append(text, end...)
	_, err := f.WriteAt(text, off)
	if err == nil {
		return nil
	}
	_, back := f.WriteAt([]byte(end), off)
	return errors.Join(err, back, f.Truncate(size))
}

func texts(data []byte, elems []element) [][]byte {
	out := make([][]byte, len(elems), len(elems)+1)
	for i, e := range elems {
		out[i] = data[e.start:e.end]
	}
	return out
}

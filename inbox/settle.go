package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/teamctl/teamctl/team"
)

const (
	// newest is how much of the end of a file is searched for an entry that may
	// already be in it: the largest buffer that the runtime reuses instead of
	// allocating it from the system.
	newest = 32 << 10
	// settleChunk limits how much is appended before it is noted: if the
	// process is killed between the two, the entries are still among the
	// newest.
	settleChunk = newest * 3 / 4
)

// Due is an entry with an ID that may be missing from a mailbox.
type Due struct {
	Entry
	Old bool // search the whole file for it, not only the newest entries
}

// Settling holds the callbacks of Settle, in the order in which it calls them
// under the lock of a mailbox.
type Settling struct {
	// Wanted is called before any file is opened: the previous lock holder may
	// have delivered what the caller came for.
	Wanted func() (bool, error)
	// Newest returns the id of the newest entry that the mailbox is known to
	// have had and that its reader is not known to have taken; "" for none.
	Newest func() (id string, err error)
	// Due returns the entries that must be in the file, in the order in which
	// they are appended.
	Due func() ([]Due, error)
	// Note is called with those that are in the file, some at a time. After an
	// error from Note nothing more is appended, so that entries in the file
	// that were not noted are always among the newest, where the next call
	// finds them.
	Note func(there []Due) error
}

// Settle appends what is due to an existing file (otherwise it returns ErrGone)
// and has it noted before it releases the lock: of many processes that write to
// one mailbox at the same time the first delivers the entries of all. Its cost
// does not depend on the length of the history, except for entries that are
// Old. It returns ErrOverwritten if the newest entry is missing: the file
// changed in a way that must be examined first. An entry that cannot be written
// is skipped and reported in the error.
func (b *Box) Settle(ctx context.Context, s Settling) error {
	return b.holdIf(ctx, "write to", true, false, s.Wanted, func(h *holding) error {
		due, err := s.Due()
		if err != nil || len(due) == 0 {
			return err
		}
		if s.Newest != nil {
			if err := h.notOverwritten(s.Newest); err != nil {
				return err
			}
		}
		return h.settle(due, s.Note)
	})
}

// ErrOverwritten means that an entry that the mailbox has had is missing.
// Reconcile finds out whether it was taken or lost.
var ErrOverwritten = errors.New("an entry is missing from the mailbox")

func (h *holding) notOverwritten(newest func() (string, error)) error {
	id, err := newest()
	if err != nil || id == "" {
		return err
	}
	there, err := h.stands(id)
	if err == nil && !there {
		err = ErrOverwritten
	}
	return err
}

func (h *holding) settle(due []Due, note func([]Due) error) error {
	there, err := h.present(due)
	if err != nil {
		return err
	}
	var have, chunk []Due
	for i, d := range due {
		if there[i] {
			have = append(have, d)
		}
	}
	if len(have) > 0 {
		if err := note(have); err != nil {
			return err
		}
	}
	var refused error
	var raws [][]byte
	size := 0
	bring := func() error {
		if len(chunk) == 0 {
			return nil
		}
		if err := h.append(raws, false); err != nil {
			return err
		}
		err := note(chunk)
		chunk, raws, size = nil, nil, 0
		return err
	}
	for i, d := range due {
		if there[i] {
			continue
		}
		raw, err := d.text()
		if err != nil {
			refused = errors.Join(refused, fmt.Errorf("message %s: %w", d.ID, err))
			continue
		}
		if size+len(raw) > settleChunk {
			if err := bring(); err != nil {
				return err
			}
		}
		chunk, raws, size = append(chunk, d), append(raws, raw), size+len(raw)
	}
	return errors.Join(bring(), refused)
}

// text returns the entry's text in the array.
func (e *Entry) text() ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	return e.encode()
}

// present reports which entries are in the file. It returns ErrGone if the file
// is missing or empty.
func (h *holding) present(due []Due) (there []bool, err error) {
	f, info, err := h.open(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() == 0 {
		return nil, h.emptied()
	}
	there = make([]bool, len(due))
	var tail, whole []byte
	var elems []element
	for i, d := range due {
		switch {
		case d.ID == "":
			return nil, team.Errorf(team.CodeInvalid, "a message to append at most once needs an id")
		case !d.Old:
			if tail == nil {
				if tail, err = readFrom(f, max(info.Size()-newest, 0), info.Size()); err != nil {
					return nil, err
				}
			}
			there[i] = bytes.Contains(tail, team.AppendJSONString(nil, d.ID))
		default:
			if whole == nil {
				if whole, err = readFrom(f, 0, info.Size()); err != nil {
					return nil, err
				}
				var bad *scanError
				if elems, bad = scanArray(whole); bad != nil {
					return nil, h.repair(whole, elems, bad)
				}
			}
			there[i] = standsIn(whole, elems, d.ID)
		}
	}
	return there, nil
}

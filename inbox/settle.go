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
	// newest is how much of the end of a file is looked through for an entry that may be
	// there already: the largest buffer that the runtime does not take from the system anew.
	newest = 32 << 10
	// settleChunk bounds what is appended before its standing there is noted: who is killed
	// between the two leaves it among the newest.
	settleChunk = newest * 3 / 4
)

// Due is an entry with an ID that a mailbox may lack.
type Due struct {
	Entry
	Old bool // it is looked for in the whole file, not only among the newest
}

// Settling is what Settle asks under the lock of a mailbox, in this order.
type Settling struct {
	// Wanted is asked before anything is opened: who had the lock before may have settled
	// what the caller came for.
	Wanted func() (bool, error)
	// Newest is the id of the newest entry that the mailbox is known to have had and its
	// reader is not known to have taken; "" for none.
	Newest func() (id string, err error)
	// Due are the entries that are to stand in the file, in the order in which they are
	// appended.
	Due func() ([]Due, error)
	// Note is told which of them do, some at a time. After its error nothing more is
	// appended, so that what stands in the file and was not noted is always among the
	// newest: there the next one finds it.
	Note func(there []Due) error
}

// Settle appends what is due to a file that is there, else it is ErrGone, and has it
// noted before the lock is free: of many that write to one mailbox at a time the first
// brings what all of them have. It costs the same whatever the history, but for entries
// that are Old. It is ErrOverwritten where the newest entry is missing: something has become of
// the file that has to be looked at first. An entry that cannot be written is left out and told in the error.
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

// ErrOverwritten says that a mailbox lacks an entry that it has had. Reconcile finds out
// whether that was taken or is lost.
var ErrOverwritten = errors.New("the mailbox lacks an entry that it has had")

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

// text is the entry as it stands in the array.
func (e *Entry) text() ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	return e.encode()
}

// present says which entries the file has. It is ErrGone where there is no file, or one without a
// byte in it.
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
			return nil, team.Errorf(team.CodeInvalid, "a message that is to be there once needs an id")
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

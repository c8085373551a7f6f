package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Other programs change a mailbox in their own ways: a reader drops unknown
// keys, removes what it has read, or empties the file; an accident puts an
// older copy or an empty array in its place. Reconcile distinguishes these by
// what the file shows:
//
//   - an entry without an id but with the same sender, text and time is the entry;
//   - if an entry is missing but a newer one is present, another program removed it:
//     entries are appended and restored in order, so no older copy looks like this;
//   - if the array is empty, and another program read the file while the entry was in
//     it (see access.go), the reader cleared it. A file of zero length is not a
//     cleared mailbox but an interrupted write.
//
// Everything else that is missing counts as lost.

// Expected is an entry that a mailbox had, or is about to get.
type Expected struct {
	Entry
	// Since is when the entry was known to be in the file; zero if it may never
	// have been there.
	Since time.Time
}

// Trace is what a mailbox shows about an expected entry.
type Trace struct {
	Stands bool
	Taken  string // evidence that its reader has it; "" if there is none
}

// Values of Trace.Taken.
const (
	TakenMarked  = "marked as read in the mailbox file by a program that has dropped its id"
	TakenRemoved = "another program has removed it from the mailbox file"
	TakenEmptied = "another program has emptied the mailbox file after reading it"
)

// Reconcile appends the entries that put selects, given what the mailbox shows
// about the entries in want, which are in the order in which they were
// appended. It is a single write: all of them are in the file, or none. If the
// file was missing or empty, Reconcile also changes the mark of Lack and
// returns the new one, so that a process that restored mail to the former file
// does not remove it. It returns ErrGone if the file was deleted meanwhile.
func (b *Box) Reconcile(ctx context.Context, mark string, want []Expected, put func([]Trace) ([]Entry, error)) (string, error) {
	err := b.hold(ctx, "write to", true, false, func(h *holding) error {
		data, info, err := h.load()
		if err != nil {
			return err
		}
		if info != nil && len(data) == 0 {
			if err := h.rested(); err != nil {
				return err
			}
		}
		elems, bad := scanArray(data)
		if bad != nil {
			return h.repair(data, elems, bad)
		}
		traces := h.box.traces(data, elems, info, want)
		add, err := put(traces)
		if err != nil || len(add) == 0 {
			return err
		}
		raws, refused := make([][]byte, 0, len(add)), error(nil)
		for i := range add {
			raw, err := add[i].text()
			if err != nil {
				refused = errors.Join(refused, fmt.Errorf("message %s: %w", add[i].ID, err))
				continue
			}
			raws = append(raws, raw)
		}
		if len(raws) == 0 {
			return refused
		}
		if info != nil && len(data) > 0 {
			return errors.Join(h.append(raws, false), refused)
		}
		if mark, err = b.writeLack(); err != nil {
			return err
		}
		return errors.Join(h.append(raws, true), refused)
	})
	return mark, err
}

// Traces returns what the mailbox shows about entries, without a lock and
// without a change. It returns CodeUnavailable (mailbox_unsettled) while the
// mailbox is being written, or is damaged.
func (b *Box) Traces(want []Expected) (out []Trace, err error) {
	defer func() { err = b.explain("read", err) }()
	root, err := b.openDir()
	if errors.Is(err, fs.ErrNotExist) {
		return make([]Trace, len(want)), nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	data, info, elems, err := (&holding{box: b, root: root, name: b.name}).settled()
	if err != nil {
		return nil, err
	}
	return b.traces(data, elems, info, want), nil
}

// Has reports whether the file contains an entry with an id; it searches the
// newest first.
func (b *Box) Has(ctx context.Context, id string) (there bool, err error) {
	err = b.hold(ctx, "read", false, false, func(h *holding) error {
		there, err = h.stands(id)
		return err
	})
	return there, err
}

func (h *holding) stands(id string) (_ bool, err error) {
	f, info, err := h.open(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tail, err := readFrom(f, max(info.Size()-newest, 0), info.Size())
	if err != nil || bytes.Contains(tail, team.AppendJSONString(nil, id)) || info.Size() <= newest {
		return err == nil && bytes.Contains(tail, team.AppendJSONString(nil, id)), err
	}
	data, _, err := h.load()
	if err != nil {
		return false, err
	}
	elems, bad := scanArray(data)
	if bad != nil {
		return false, h.repair(data, elems, bad)
	}
	return standsIn(data, elems, id), nil
}

// said identifies an entry without an id.
type said struct{ from, text, at string }

func (b *Box) traces(data []byte, elems []element, info fs.FileInfo, want []Expected) []Trace {
	ids := map[string]bool{}
	nameless := map[said][]bool{} // with their read marks
	for i, e := range elems {
		if !e.obj {
			continue
		}
		if x := decode(data, e, i); x.ID != "" {
			ids[x.ID] = true
		} else {
			k := said{x.From, x.Text, x.Timestamp}
			nameless[k] = append(nameless[k], x.Read)
		}
	}
	out := make([]Trace, len(want))
	for i, w := range want {
		if ids[w.ID] {
			out[i].Stands = true
			continue
		}
		k := said{w.From, w.shown(), w.Timestamp}
		if same := nameless[k]; len(same) > 0 {
			out[i].Stands, nameless[k] = true, same[1:]
			if same[0] {
				out[i].Taken = TakenMarked
			}
		}
	}
	emptied := len(data) > 0 && len(elems) == 0
	var read func(Expected) bool
	newer := false
	for i := len(out) - 1; i >= 0; i-- {
		switch {
		case out[i].Stands:
			newer = true
		case want[i].Since.IsZero():
		case newer:
			out[i].Taken = TakenRemoved
		case emptied:
			if read == nil {
				read = b.readWhile(info)
			}
			if read(want[i]) {
				out[i].Taken = TakenEmptied
			}
		}
	}
	return out
}

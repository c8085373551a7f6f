package inbox

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
)

// Tail follows a mailbox and reads what was appended since it read last, so that a look
// costs the same whatever the file holds. It remembers the last entry that it has seen
// and reads on behind it. Where that entry is not in its place any more, because somebody
// has replaced or rewritten the file, it reads all of it once.
type Tail struct {
	box *Box

	mu   sync.Mutex
	info fs.FileInfo // of the file; nil before the first look
	last element     // the last entry that was seen; its offsets are in the file
	text []byte      // that entry, without its read mark
}

// Tail returns a Tail that begins with all that is unread.
func (b *Box) Tail() *Tail { return &Tail{box: b} }

// Unread are the messages that are not marked read and were not there at the last look,
// oldest first. The error may be a *CorruptError.
func (t *Tail) Unread(ctx context.Context) ([]Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Entry
	err := t.box.hold(ctx, "read", false, false, func(h *holding) (err error) {
		f, info, err := h.open(os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			t.info = nil
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		data, elems, off, ok := t.rest(f, info)
		if !ok {
			if data, err = readFrom(f, 0, info.Size()); err != nil {
				return err
			}
			var bad *scanError
			if elems, bad = scanArray(data); bad != nil {
				t.info = nil
				return h.repair(data, elems, bad)
			}
		}
		out = (&view{data: data, elems: elems}).unread()
		t.see(info, data, elems, off)
		return nil
	})
	return out, err
}

// Again makes the next look begin with all that is unread.
func (t *Tail) Again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.info = nil
}

// rest is what follows the last entry that was seen, from offset off of the file on; ok is
// false where that entry is not in its place.
func (t *Tail) rest(f *os.File, info fs.FileInfo) (data []byte, elems []element, off int64, ok bool) {
	if t.info == nil || !os.SameFile(t.info, info) || info.Size() < int64(t.last.end) {
		return nil, nil, 0, false
	}
	off = int64(t.last.start)
	data, err := readFrom(f, off, info.Size())
	if err != nil {
		return nil, nil, 0, false
	}
	n := t.last.end - t.last.start
	if len(data) < n || !bytes.Equal(markless(data[:n], t.last), t.text) {
		return nil, nil, 0, false
	}
	elems, bad := scanMore(data[n:])
	if bad != nil {
		return nil, nil, 0, false
	}
	return data[n:], elems, off + int64(n), true
}

// see remembers the last of the entries that were read.
func (t *Tail) see(info fs.FileInfo, data []byte, elems []element, off int64) {
	if len(elems) == 0 {
		if off == 0 {
			t.info = nil
		}
		return
	}
	e := elems[len(elems)-1]
	t.text = markless(data[e.start:e.end], e)
	for _, at := range []*int{&e.start, &e.end, &e.read.start, &e.read.end} {
		*at += int(off)
	}
	t.info, t.last = info, e
}

// markless is a copy of an entry's text with its read mark blanked: that may change in
// place, to a value of the same length. e has its offsets.
func markless(text []byte, e element) []byte {
	out := bytes.Clone(text)
	if e.read.end > e.read.start {
		from := e.read.start - e.start
		clear(out[min(from, len(out)):min(from+len("false"), len(out))])
	}
	return out
}

package inbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// A reader comes back for every message, and a mailbox grows: so it remembers up
// to where all entries were read, and reads from there. The place is remembered
// with the text before it, because others rewrite the file as a whole.

// cursor is the end of an element up to which everything is read.
type cursor struct {
	info fs.FileInfo // of the file, for its identity; nil for none
	off  int64
	next int    // index of the element that follows
	tail []byte // what stands before off
}

const tailLen = 256

// view is the file from some element on, while the lock is held.
type view struct {
	info  fs.FileInfo // nil: there is no file
	off   int64       // where data starts in the file
	first int         // index of the first element
	data  []byte
	elems []element
	from  cursor // where it started
}

// view reads what follows the remembered place, or the whole file. A damaged file
// is repaired and reported.
func (h *holding) view() (v *view, err error) {
	f, info, err := h.open(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return &view{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if v, err := h.viewRest(f, info); v != nil || err != nil {
		return v, err
	}
	data, err := readFrom(f, 0, info.Size())
	if err != nil {
		return nil, err
	}
	elems, bad := scanArray(data)
	if bad != nil {
		return nil, h.repair(data, elems, bad)
	}
	return &view{info: info, data: data, elems: elems}, nil
}

// viewRest is nil when the remembered place does not hold any more.
func (h *holding) viewRest(f *os.File, info fs.FileInfo) (*view, error) {
	h.box.mu.Lock()
	c := h.box.seen
	h.box.mu.Unlock()
	if c.info == nil || !os.SameFile(c.info, info) || info.Size() <= c.off {
		return nil, nil
	}
	data, err := readFrom(f, c.off-int64(len(c.tail)), info.Size())
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(data, c.tail)
	if !ok {
		return nil, nil
	}
	elems, bad := scanMore(rest)
	if bad != nil {
		return nil, nil // the whole file decides whether it is damaged
	}
	return &view{info: info, off: c.off, first: c.next, data: rest, elems: elems, from: c}, nil
}

func (v *view) unread() []Entry {
	var out []Entry
	for i, e := range v.elems {
		if e.obj && !e.done {
			out = append(out, decode(v.data, e, v.first+i))
		}
	}
	return out
}

// remember keeps the end of the entries that are read from the start on.
func (b *Box) remember(v *view) {
	c := v.from
	for i, e := range v.elems {
		if e.obj && !e.done {
			break
		}
		c = cursor{info: v.info, off: v.off + int64(e.end), next: v.first + i + 1}
		if c.tail = v.data[:e.end]; e.end < tailLen {
			c.tail = slices.Concat(v.from.tail, c.tail)
		}
		c.tail = c.tail[max(0, len(c.tail)-tailLen):]
	}
	c.tail = bytes.Clone(c.tail) // a part of the text would keep all of it
	b.mu.Lock()
	b.seen = c
	b.mu.Unlock()
}

// pageSize is the least size in which a file is written; a write inside one page is
// not torn by the death of the writer.
const pageSize = 4096

// canFlip reports whether the marks of these elements can be set by overwriting
// five bytes each.
func (v *view) canFlip(elems []int) bool {
	for _, i := range elems {
		r := v.elems[i].read
		if string(v.data[r.start:r.end]) != "false" {
			return false
		}
		at := v.off + int64(r.start)
		if at/pageSize != (at+4)/pageSize {
			return false
		}
	}
	return true
}

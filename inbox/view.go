package inbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// A reader returns for every message, and a mailbox grows: so it remembers the
// position up to which all entries were read, and reads from there. It also
// remembers the text before the position, because other programs rewrite the
// whole file.

// cursor is the end of an element up to which all entries are read.
type cursor struct {
	info fs.FileInfo // identifies the file; nil for none
	off  int64
	next int    // index of the element that follows
	tail []byte // text before off
}

const tailLen = 256

// view is the file from some element on, while the lock is held.
type view struct {
	info  fs.FileInfo // nil if there is no file
	off   int64       // offset of data in the file
	first int         // index of the first element
	data  []byte
	elems []element
	from  cursor // where it started
}

// view reads what follows the remembered position, or the whole file. It
// repairs and reports a damaged file.
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

// viewRest returns nil if the remembered position is no longer valid.
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
		return nil, nil // reading the whole file decides whether it is damaged
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

// remember stores the position up to which all entries are read.
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
	c.tail = bytes.Clone(c.tail) // a subslice would keep the whole text in memory
	b.mu.Lock()
	b.seen = c
	b.mu.Unlock()
}

// quiet is the state of a file in which nothing was unread. An entry changes the size
// of the file, or its inode.
type quiet struct {
	known bool
	info  fs.FileInfo // nil: there was no file
}

// quietAfter is the age from which the time of a file tells a later change apart, as
// the clock of a filesystem has ticks.
const quietAfter = 100 * time.Millisecond

// rememberQuiet stores the state of the file if nothing in it is unread.
func (b *Box) rememberQuiet(v *view, unread []Entry) {
	q := quiet{info: v.info}
	q.known = len(unread) == 0 && (v.info == nil || time.Since(v.info.ModTime()) >= quietAfter)
	b.mu.Lock()
	b.quiet = q
	b.mu.Unlock()
}

// stillQuiet reports that the file has not changed since nothing in it was unread.
func (b *Box) stillQuiet() bool {
	b.mu.Lock()
	q := b.quiet
	b.mu.Unlock()
	if !q.known {
		return false
	}
	now, err := os.Lstat(b.Path())
	if q.info == nil || err != nil {
		return q.info == nil && errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(q.info, now) && q.info.Size() == now.Size() && q.info.ModTime().Equal(now.ModTime())
}

// pageSize is the smallest unit in which a file is written; the death of the
// writer does not tear a write within one page.
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

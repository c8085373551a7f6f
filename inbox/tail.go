package inbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Tail follows a mailbox and reads what was appended since its last read, so
// that the cost does not depend on the size of the file. It remembers the last
// entry that it has seen and reads from there. If that entry is no longer in
// its place, because the file was replaced or rewritten, it reads the whole
// file once.
type Tail struct {
	box *Box

	mu   sync.Mutex
	at   TailMark
	kept []span   // entries to return again
	last []placed // result of the last read
	read int64    // number of bytes read from the file so far
}

// placed is an entry with its position in the file.
type placed struct {
	Entry
	span
}

// TailMark is the position of a Tail, from which another process can continue.
// The zero value is the beginning.
type TailMark struct {
	Dev  uint64 `json:"dev,omitempty"` // the file
	Ino  uint64 `json:"ino,omitempty"` // 0: nothing read yet
	From int    `json:"from"`          // the last entry seen
	To   int    `json:"to"`
	Read int    `json:"read"` // the offset of its read mark; 0 if it has none
	Sum  string `json:"sum"`  // the SHA-256 of its text with a blanked read mark
	// Kept are the positions of earlier entries to return again.
	Kept [][2]int `json:"kept,omitempty"`
}

// maxKept limits how many entries a Tail returns again, because each read reads
// them.
const maxKept = 20

// Tail returns a Tail that continues from a mark.
func (b *Box) Tail(from TailMark) *Tail {
	t := &Tail{box: b, at: from}
	for _, k := range from.Kept {
		t.kept = append(t.kept, span{k[0], k[1]})
	}
	return t
}

// Mark returns the position of t.
func (t *Tail) Mark() TailMark {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.at
	m.Kept = nil
	for _, k := range t.kept {
		m.Kept = append(m.Kept, [2]int{k.start, k.end})
	}
	return m
}

// BytesRead returns the number of bytes read from the file so far.
func (t *Tail) BytesRead() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read
}

// Unread returns the unread messages that were not there at the last read,
// preceded by those that Keep selected, oldest first. The error may be a
// *CorruptError.
func (t *Tail) Unread(ctx context.Context) ([]Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = nil
	err := t.box.hold(ctx, "read", false, false, func(h *holding) (err error) {
		f, info, err := h.open(os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			t.at, t.kept = TailMark{}, nil
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		again, okKept := t.again(f, info)
		data, elems, off, ok := t.rest(f, info)
		if !ok || !okKept {
			again, off = nil, 0
			if data, err = readFrom(f, 0, info.Size()); err != nil {
				return err
			}
			var bad *scanError
			if elems, bad = scanArray(data); bad != nil {
				t.at, t.kept = TailMark{}, nil
				return h.repair(data, elems, bad)
			}
		}
		t.read += int64(len(data))
		t.last, t.kept = again, nil
		for i, e := range elems {
			if e.obj && !e.done {
				t.last = append(t.last, placed{decode(data, e, i), span{e.start + int(off), e.end + int(off)}})
			}
		}
		t.see(info, data, elems, int(off))
		return nil
	})
	out := make([]Entry, len(t.last))
	for i, p := range t.last {
		out[i] = p.Entry
	}
	return out, err
}

// Keep makes the next read return again those entries of the last one for which
// keep returns true, as long as they are unread and in place. It returns false
// if there are too many: then only the first are kept.
func (t *Tail) Keep(keep func(Entry) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = nil
	for _, p := range t.last {
		if !keep(p.Entry) {
			continue
		}
		if len(t.kept) == maxKept {
			return false
		}
		t.kept = append(t.kept, p.span)
	}
	return true
}

// Again makes the next read start with all unread messages.
func (t *Tail) Again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.kept = TailMark{}, nil
}

// again reads the kept entries; ok is false if one of them is not in its place.
func (t *Tail) again(f *os.File, info fs.FileInfo) (out []placed, ok bool) {
	for _, k := range t.kept {
		if k.start < 0 || k.end < k.start || int64(k.end) > info.Size() {
			return nil, false
		}
		data, err := readFrom(f, int64(k.start), int64(k.end))
		if err != nil {
			return nil, false
		}
		e, bad := scanElement(data, 0)
		if bad != nil || e.end != len(data) || !e.obj {
			return nil, false
		}
		if !e.done {
			out = append(out, placed{decode(data, e, 0), k})
		}
	}
	return out, true
}

// rest returns what follows the last entry seen, from offset off of the file;
// ok is false if that entry is not in its place.
func (t *Tail) rest(f *os.File, info fs.FileInfo) (data []byte, elems []element, off int64, ok bool) {
	at := t.at
	dev, ino := fileID(info)
	if at.Ino == 0 || at.Dev != dev || at.Ino != ino || at.From < 0 || at.To < at.From || info.Size() < int64(at.To) {
		return nil, nil, 0, false
	}
	off = int64(at.From)
	data, err := readFrom(f, off, info.Size())
	if err != nil {
		return nil, nil, 0, false
	}
	n := at.To - at.From
	if len(data) < n || marklessSum(data[:n], at.Read-at.From) != at.Sum {
		return nil, nil, 0, false
	}
	elems, bad := scanMore(data[n:])
	if bad != nil {
		return nil, nil, 0, false
	}
	return data[n:], elems, off + int64(n), true
}

// see remembers the last of the entries read, at offset off of the file.
func (t *Tail) see(info fs.FileInfo, data []byte, elems []element, off int) {
	if len(elems) == 0 {
		if off == 0 {
			t.at = TailMark{}
		}
		return
	}
	e := elems[len(elems)-1]
	read := 0
	if e.read.end > e.read.start {
		read = e.read.start + off
	}
	t.at = TailMark{From: e.start + off, To: e.end + off, Read: read, Sum: marklessSum(data[e.start:e.end], read-off-e.start)}
	t.at.Dev, t.at.Ino = fileID(info)
}

// marklessSum returns the digest of an entry's text with a blanked read mark,
// which may change in place to a value of the same length. mark is its offset
// in the text, negative if there is none.
func marklessSum(text []byte, mark int) string {
	if mark > 0 && mark < len(text) {
		text = bytes.Clone(text)
		clear(text[mark:min(mark+len("false"), len(text))])
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// fileID distinguishes successive files of the same name; it returns 0, 0 if
// the system does not support it.
func fileID(info fs.FileInfo) (dev, ino uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), st.Ino // signed and shorter on some systems
	}
	return 0, 0
}

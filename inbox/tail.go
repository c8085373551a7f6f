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

// Tail follows a mailbox and reads what was appended since it read last, so that a look
// costs the same whatever the file holds. It remembers the last entry that it has seen
// and reads on behind it. Where that entry is not in its place any more, because somebody
// has replaced or rewritten the file, it reads all of it once.
type Tail struct {
	box *Box

	mu   sync.Mutex
	at   TailMark
	kept []span   // entries to be returned again
	last []placed // what the last look has returned
	read int64    // bytes that were read of the file so far
}

// placed is an entry with its place in the file.
type placed struct {
	Entry
	span
}

// TailMark is how far a Tail has read, to go on from in another process. The zero value is
// the beginning.
type TailMark struct {
	Dev  uint64 `json:"dev,omitempty"` // the file
	Ino  uint64 `json:"ino,omitempty"` // 0: nothing was read
	From int    `json:"from"`          // the last entry that was seen
	To   int    `json:"to"`
	Read int    `json:"read"` // the offset of its read mark; 0: it has none
	Sum  string `json:"sum"`  // the SHA-256 of its text, the read mark blanked
	// Kept are the places of earlier entries that are to be returned again.
	Kept [][2]int `json:"kept,omitempty"`
}

// maxKept bounds how many entries a Tail returns again: each look reads them.
const maxKept = 20

// Tail returns a Tail that goes on from a mark.
func (b *Box) Tail(from TailMark) *Tail {
	t := &Tail{box: b, at: from}
	for _, k := range from.Kept {
		t.kept = append(t.kept, span{k[0], k[1]})
	}
	return t
}

// Mark is how far t has read.
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

// BytesRead is how much of the file was read so far.
func (t *Tail) BytesRead() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read
}

// Unread are the messages that are not marked read and were not there at the last look, and
// before them those that Keep has named, oldest first. The error may be a *CorruptError.
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

// Keep makes the next look return those entries of the last one again for which keep is
// true, while they stand unread in their place. It reports false where these are too many:
// then none but the first are.
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

// Again makes the next look begin with all that is unread.
func (t *Tail) Again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.kept = TailMark{}, nil
}

// again reads the entries that were kept; ok is false where one is not in its place.
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

// rest is what follows the last entry that was seen, from offset off of the file on; ok is
// false where that entry is not in its place.
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

// see remembers the last of the entries that were read, at off of the file.
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

// marklessSum is the digest of an entry's text with its read mark blanked: that may change
// in place, to a value of the same length. mark is its offset in the text, negative where
// there is none.
func marklessSum(text []byte, mark int) string {
	if mark > 0 && mark < len(text) {
		text = bytes.Clone(text)
		clear(text[mark:min(mark+len("false"), len(text))])
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// fileID tells files apart that have the same name one after the other; 0, 0 where the
// system does not say.
func fileID(info fs.FileInfo) (dev, ino uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), st.Ino //nolint:gosec,unconvert // signed and shorter on some systems
	}
	return 0, 0
}

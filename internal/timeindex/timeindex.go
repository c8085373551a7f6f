// Package timeindex records when which part of a growing file was written: next
// to a file F there is F.idx, with records of 16 bytes (offset in F, Unix
// milliseconds, both little-endian), appended at most once a second while F
// grows. The content of F from a record's offset on was written at its time or
// later, and before the time of the next record.
//
// It is a hint: a torn last record is ignored, a missing index means that
// nothing is known, and after a truncation the offsets start again from smaller
// values.
package timeindex

import (
	"encoding/binary"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/regular"
)

const (
	recordSize = 16
	// every is the minimum interval between two records.
	every = time.Second
	// A program that writes a byte now and then must not have an index longer
	// than its output: a few bytes get a record only after a longer pause.
	fewBytes = 64
	pause    = 30 * time.Second
)

// Path returns the index of a file.
func Path(file string) string { return file + ".idx" }

// Writer appends to an index. Its zero value and a nil Writer drop everything.
type Writer struct {
	f    *os.File
	last time.Time
	at   int64
}

// Open opens or creates the index of a file. An error only means that times
// will be unknown: the Writer is still usable.
func Open(file string) (*Writer, error) {
	w := &Writer{}
	f, err := regular.OpenFile(Path(file), os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return w, err
	}
	w.f = f
	if fi, err := w.f.Stat(); err == nil && fi.Size()%recordSize != 0 { // torn by a crash
		_ = w.f.Truncate(fi.Size() - fi.Size()%recordSize)
	}
	return w, nil
}

// Note records that the file is written at the offset at time now.
func (w *Writer) Note(offset int64, now time.Time) {
	if w == nil || w.f == nil {
		return
	}
	since := now.Sub(w.last)
	grown := offset - w.at
	if !w.last.IsZero() && grown >= 0 && (since < every || grown < fewBytes && since < pause) {
		return
	}
	var b [recordSize]byte
	binary.LittleEndian.PutUint64(b[:], uint64(offset))
	binary.LittleEndian.PutUint64(b[8:], uint64(now.UnixMilli()))
	if _, err := w.f.Write(b[:]); err == nil {
		w.last, w.at = now, offset
	}
}

// Close closes the index.
func (w *Writer) Close() error {
	if w == nil || w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	return err
}

// Rotate renames the index of a file as the file itself was renamed: an index
// of the previous file of that name must not stay.
func Rotate(from, to string) {
	if os.Rename(Path(from), Path(to)) != nil {
		_ = os.Remove(Path(to))
	}
}

// Since returns where the content written at t or later begins: at the offset
// or slightly after it (see every and pause). whole means that even the file's
// first byte may be of that time, so that the content may begin before this
// file; known is false without an index.
func Since(file string, t time.Time) (offset int64, whole, known bool) {
	b, err := regular.ReadFile(Path(file))
	if err != nil || len(b) < recordSize {
		return 0, true, false
	}
	n := len(b) / recordSize
	at := func(i int) (off, ms int64) {
		r := b[i*recordSize:]
		return int64(binary.LittleEndian.Uint64(r)), int64(binary.LittleEndian.Uint64(r[8:]))
	}
	first := 0 // of the records since the last truncation
	for i := 1; i < n; i++ {
		off, _ := at(i)
		if before, _ := at(i - 1); off < before {
			first = i
		}
	}
	want := t.UnixMilli()
	// The wall clock may have been set back: use the first record that is late
	// enough, not the last one that is early enough.
	for i := first; i < n; i++ {
		off, ms := at(i)
		if ms < want {
			continue
		}
		if i == first {
			return off, true, true
		}
		// Content between the previous record and this one may be late enough
		// too, unless it would have had a record of its own.
		before, beforeMS := at(i - 1)
		if want-beforeMS < pause.Milliseconds() {
			return before, false, true
		}
		return off, false, true
	}
	off, ms := at(n - 1)
	if want-ms < pause.Milliseconds() {
		return off, false, true
	}
	fi, err := os.Stat(file)
	if err != nil {
		return off, false, true
	}
	return fi.Size(), false, true
}

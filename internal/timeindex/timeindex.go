// Package timeindex tells when which part of a growing file was written: beside a
// file F stands F.idx, records of 16 bytes (offset in F, Unix milliseconds, both
// little-endian), appended at most once a second while F grows. What stands in F
// from a record's offset on was written at its time or later, and before the time
// of the next record.
//
// It is a hint: a torn last record is ignored, a missing index means that nothing
// is known, and a file that was cut begins again with smaller offsets.
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
	// every is the distance of two records.
	every = time.Second
	// A program that writes a byte now and then must not have an index that is longer
	// than its output: few bytes get a record only after a longer pause.
	fewBytes = 64
	pause    = 30 * time.Second
)

// Path is the index of a file.
func Path(file string) string { return file + ".idx" }

// Writer appends to an index. Its zero value and a nil Writer drop everything.
type Writer struct {
	f    *os.File
	last time.Time
	at   int64
}

// Open opens or creates the index of a file. An error means only that times will
// not be known: the Writer works all the same.
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

// Note says that at now the file is written to at the offset.
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

// Rotate gives the index of one file to another name, as the file itself was
// given: an index of what stood there before must not stay.
func Rotate(from, to string) {
	if os.Rename(Path(from), Path(to)) != nil {
		_ = os.Remove(Path(to))
	}
}

// Since finds where what was written at t or later begins: at the offset or a
// little after it (see every and pause). whole says that even the file's first byte
// may be of that time, so that what is wanted may begin before this file; known is
// false without an index.
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
	first := 0 // of the records since the file was cut last
	for i := 1; i < n; i++ {
		off, _ := at(i)
		if before, _ := at(i - 1); off < before {
			first = i
		}
	}
	want := t.UnixMilli()
	// The wall clock may have been set back: the first record that is late enough
	// counts, not the last one that is early enough.
	for i := first; i < n; i++ {
		off, ms := at(i)
		if ms < want {
			continue
		}
		if i == first {
			return off, true, true
		}
		// What came between the record before and this one may be late enough too,
		// unless nothing could come so late without a record of its own.
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

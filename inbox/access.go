package inbox

import (
	"bytes"
	"io/fs"
	"os"
	"time"

	"github.com/teamctl/teamctl/team"
)

// The file's access time shows whether another program has read a mailbox:
// teamctl opens it without changing the access time (O_NOATIME), and the kernel
// updates it at the first read after a write, also on relatime mounts. Where it
// is never updated (noatime, other systems) there is no evidence, and missing
// entries count as lost.
//
// After each append teamctl sets it to the epoch. A new file therefore counts
// as unread, and a program that read the file in order to append to it shows
// nothing about the entries after that.
//
// A program that replaces the file by another one loses its access time.
// locks/<agent>.last is therefore a second link to the file to which teamctl
// last appended.

// readWhile returns a function that reports whether another program has read a
// file while an entry was in it. now is the file that is empty now.
func (b *Box) readWhile(now fs.FileInfo) func(Expected) bool {
	last, err := os.Lstat(b.last)
	if err != nil || !last.Mode().IsRegular() {
		return func(Expected) bool { return false }
	}
	read, ok := accessed(last)
	if !ok {
		return func(Expected) bool { return false }
	}
	if os.SameFile(last, now) {
		// Emptied in place. A later read shows nothing about the former
		// contents.
		return func(e Expected) bool { return after(read, e) && !read.After(now.ModTime()) }
	}
	var data []byte
	return func(e Expected) bool {
		if !after(read, e) {
			return false
		}
		if data == nil {
			data = quietly(b.last)
		}
		return bytes.Contains(data, team.AppendJSONString(nil, e.ID))
	}
}

// ReadAt returns when another program last read the mailbox file since teamctl
// appended to it; the epoch if never or unknown.
func (b *Box) ReadAt() time.Time {
	never := time.Unix(0, 0)
	info, err := os.Lstat(b.Path())
	if err != nil {
		return never
	}
	if read, ok := accessed(info); ok {
		return read
	}
	return never
}

// after reports whether a file was read while an entry was in it. The kernel's
// time of a read is slightly behind the clock. It is not enough that the
// entry's append reset the access time: the writer may have been killed before
// that.
func after(read time.Time, e Expected) bool { return read.After(e.Since.Add(-kernelTick)) }

const kernelTick = 20 * time.Millisecond

// quietly reads a file without changing its access time; it returns nil if that
// is impossible.
func quietly(path string) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|noAccessTime|noFollow, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read, so the error does not matter
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	data, err := readFrom(f, 0, info.Size())
	if err != nil {
		return nil
	}
	return data
}

// follow makes locks/<agent>.last a link to the file just appended to. If that
// fails, as on a file system without hard links, there is less evidence.
func (h *holding) follow(info fs.FileInfo) {
	b := h.box
	if last, err := os.Lstat(b.last); err == nil && os.SameFile(last, info) {
		return
	}
	next := b.last + ".next"
	_ = os.Remove(next) // left by a process that was killed here
	if err := os.Link(b.Path(), next); err != nil {
		return
	}
	_ = os.Rename(next, b.last)
}

// shown returns the text as it appears in the file.
func (e *Entry) shown() string { return string(bytes.ToValidUTF8([]byte(e.Text), []byte("\ufffd"))) }

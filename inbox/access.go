package inbox

import (
	"bytes"
	"io/fs"
	"os"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Whether another program has read a mailbox is told by the file's access time: teamctl
// opens it without changing that (O_NOATIME), and the kernel moves it at the first read
// after a write, on mounts with relatime too. Where it is never moved (noatime, other
// systems) there is no evidence, and what is missing counts as lost.
//
// After each append it is set to the beginning of time. So a new file counts as unread, and a
// program that has read the file in order to add to it says nothing of what came after.
//
// A program that replaces the file by another one takes its access time away. So
// locks/<agent>.last is a second name of the file that teamctl has appended to last.

// readWhile reports of entries whether another program has read a file while they stood in
// it. now is the file that is empty now.
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
		// Emptied in place. A read after that says nothing of what was there before.
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

// ReadAt is when another program has last read the mailbox file, since teamctl appended to
// it; the beginning of time for never, or where that cannot be told.
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

// after reports that a file was read when an entry stood in it. The kernel's time of a read
// is a little older than the clock's. That the access time was set back by the entry's append
// is not enough: its writer may have been killed before that.
func after(read time.Time, e Expected) bool { return read.After(e.Since.Add(-kernelTick)) }

const kernelTick = 20 * time.Millisecond

// quietly reads a file without changing its access time; nothing where it cannot.
func quietly(path string) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|noAccessTime|noFollow, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
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

// follow makes the file that was appended to the one that locks/<agent>.last names. Where
// that fails, as on a file system without links, there is less evidence.
func (h *holding) follow(info fs.FileInfo) {
	b := h.box
	if last, err := os.Lstat(b.last); err == nil && os.SameFile(last, info) {
		return
	}
	next := b.last + ".next"
	_ = os.Remove(next) // of a process that was killed here
	if err := os.Link(b.Path(), next); err != nil {
		return
	}
	_ = os.Rename(next, b.last)
}

// shown is the text as it stands in the file.
func (e *Entry) shown() string { return string(bytes.ToValidUTF8([]byte(e.Text), []byte("\ufffd"))) }

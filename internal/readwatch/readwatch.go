// Package readwatch reports which files of a directory are read. That is for
// files by which another program takes something: reading is the first that is
// seen of it.
package readwatch

// Event is a read or a write of a file.
type Event struct {
	Name    string // of the file in the directory; "" if events may be missing
	Written bool   // it was written to, or replaced; else it was read
}

// Watcher reports the files of one directory that are read.
type Watcher struct {
	flush, end func()
}

// Watch calls tell when a process closes a file in dir that it had opened for
// reading only since the last write to it, and when a file is written to. It does
// so until Close, in the order of the events; tell must not block, nor call the
// watcher. A process that opens the file for writing, too, is not reported as a
// reader: so it can read without reporting itself. Where the system reports nothing
// of the kind the error wraps errors.ErrUnsupported.
func Watch(dir string, tell func(Event)) (*Watcher, error) { return watch(dir, tell) }

// Flush returns once all events before the call are reported.
func (w *Watcher) Flush() { w.flush() }

// Close ends the reports, and waits for a running call of tell.
func (w *Watcher) Close() { w.end() }

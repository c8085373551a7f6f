// Package readwatch reports which files of a directory are read. That is for
// files by which another program takes something: reading is the first that is
// seen of it.
package readwatch

// Watcher reports the files of one directory that are read.
type Watcher struct {
	end func()
}

// Watch calls tell with the name of a file in dir when a process closes it that
// had opened it for reading only, and with "" if reports may be missing. It does
// so until Close, from one goroutine; tell must not block. The process's own
// reads are reported too. Where the system reports nothing of the kind the
// error wraps errors.ErrUnsupported.
func Watch(dir string, tell func(name string)) (*Watcher, error) { return watch(dir, tell) }

// Close ends the reports, and waits for a running call of tell.
func (w *Watcher) Close() { w.end() }

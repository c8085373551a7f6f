// Package memberlog reads a log that is rotated by renaming (F is the newest
// part, F.1 the previous one, F.2 the oldest) as one stream while it is being
// written: from its beginning, from its last lines or from a time on, and
// onwards as it grows. A part that is truncated or replaced is read again from
// its start.
package memberlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/internal/timeindex"
)

// parts is the maximum number of parts.
const parts = 3

// Reader reads one log. It must be used by one goroutine.
type Reader struct {
	path string
	file *os.File // the part being read; nil before there is one
	at   int64

	dirs  dirwatch.Hub
	stops []func()      // of the watches
	wrote chan struct{} // there may be more to read
	ended chan struct{} // the directory was removed
}

// New returns a reader of the log at path. It opens nothing.
func New(path string) *Reader { return &Reader{path: path} }

func (r *Reader) part(i int) string {
	if i == 0 {
		return r.path
	}
	return r.path + "." + strconv.Itoa(i)
}

// Close closes the file and the watch.
func (r *Reader) Close() error {
	var errs []error
	if r.file != nil {
		errs = append(errs, r.file.Close())
		r.file = nil
	}
	for _, stop := range r.stops {
		stop()
	}
	r.stops = nil
	return errors.Join(errs...)
}

// Start moves to the beginning of the oldest part. If the log has none the
// error is fs.ErrNotExist; it may still be created.
func (r *Reader) Start() error {
	for range attempts {
		for i := parts - 1; i >= 0; i-- {
			if err := r.to(i, 0); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if !r.turning() {
			break
		}
	}
	return fmt.Errorf("open the log: %w", &fs.PathError{Op: "open", Path: r.path, Err: fs.ErrNotExist})
}

// attempts to find the parts while they are being renamed
const attempts = 20

// turning reports whether a part has appeared meanwhile.
func (r *Reader) turning() bool {
	for i := range parts {
		if _, err := os.Stat(r.part(i)); err == nil {
			return true
		}
	}
	return false
}

// to opens a part.
func (r *Reader) to(i int, at int64) error {
	f, err := regular.Open(r.part(i))
	if err != nil {
		return err
	}
	r.use(f, at)
	return nil
}

func (r *Reader) use(f *os.File, at int64) {
	if r.file != nil {
		_ = r.file.Close()
	}
	r.file, r.at = f, at
}

// StartTail moves to the start of the last n lines. An unfinished last line
// counts.
func (r *Reader) StartTail(n int) error {
	if n <= 0 {
		if err := r.to(0, 0); err != nil {
			return r.Start() // in the middle of a rotation, or only old parts
		}
		fi, err := r.file.Stat()
		if err == nil {
			r.at = fi.Size()
		}
		return err
	}
	found, empty := false, true
	for i := 0; i < parts && n > 0; i++ {
		f, err := regular.Open(r.part(i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		at, size, seen, err := tailOffset(f, n, empty)
		r.use(f, at)
		if err != nil {
			return fmt.Errorf("read %s: %w", f.Name(), err)
		}
		found, empty, n = true, empty && size == 0, n-seen
	}
	if !found {
		return r.Start()
	}
	return nil
}

// tailOffset returns where the last n lines of a file begin, its length, and
// how many line ends before that were seen. The last line of the last part may
// be unfinished, and counts.
func tailOffset(f *os.File, n int, last bool) (offset, length int64, seen int, err error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, 0, 0, err
	}
	const block = 32 << 10
	buf := make([]byte, block)
	end := fi.Size()
	ends := 0 // line ends before the current offset
	for at := end; at > 0; {
		size := min(int64(block), at)
		at -= size
		if _, err := f.ReadAt(buf[:size], at); err != nil && !errors.Is(err, io.EOF) {
			return 0, end, 0, err
		}
		for i := size - 1; i >= 0; i-- {
			switch {
			case buf[i] != '\n':
			case at+i == end-1 && last: // the end of the last line does not end a line before it
			case ends+1 == n:
				return at + i + 1, end, n, nil
			default:
				ends++
			}
		}
	}
	// Its first line may have begun in the previous part: it is counted there,
	// by the line end that this part does not have.
	return 0, end, ends, nil
}

// StartSince moves to the start of what was written at t or later, or slightly
// before. Without an index of times, it includes a part completely if it was
// written to since then.
func (r *Reader) StartSince(t time.Time) error {
	found := false
	for i := range parts {
		name := r.part(i)
		fi, err := os.Stat(name)
		if err != nil {
			continue
		}
		if fi.ModTime().Before(t) {
			if found {
				break // the whole of the newer part
			}
			if err := r.to(i, fi.Size()); err != nil {
				continue
			}
			found = true
			break
		}
		at, whole, known := timeindex.Since(name, t)
		if !known {
			at = 0
		}
		if err := r.to(i, min(at, fi.Size())); err != nil {
			continue
		}
		found = true
		if !whole {
			break
		}
	}
	if !found {
		return r.Start()
	}
	return nil
}

// Read reads what is available. At the present end it returns io.EOF; there may
// be more later. Before the log exists it also returns io.EOF.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for range attempts {
		if r.file == nil {
			if err := r.Start(); errors.Is(err, fs.ErrNotExist) {
				return 0, io.EOF
			} else if err != nil {
				return 0, err
			}
		}
		n, err := r.file.ReadAt(p, r.at)
		r.at += int64(n)
		if n > 0 {
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read the log: %w", err)
		}
		switch moved, err := r.next(); {
		case err != nil:
			return 0, err
		case !moved:
			return 0, io.EOF
		}
	}
	return 0, io.EOF
}

// next continues after a part that is read to its end: with the part that
// followed it, or with its start if it was truncated. moved is false at the end
// of the newest part.
func (r *Reader) next() (moved bool, err error) {
	mine, err := r.file.Stat()
	if err != nil {
		return false, fmt.Errorf("read the log: %w", err)
	}
	switch {
	case mine.Size() < r.at:
		r.at = 0
		return true, nil
	case mine.Size() > r.at:
		return true, nil // it grew after the read
	}
	for range attempts {
		k := r.find(mine)
		if k == 0 {
			return false, nil
		}
		f, err := r.after(k, mine)
		if err != nil {
			return false, err
		}
		if k > 0 && r.find(mine) != k { // renamed meanwhile
			if f != nil {
				_ = f.Close()
			}
			continue
		}
		if f == nil {
			return false, nil // the newest does not exist yet
		}
		// A writer may have written to this part after the check and before it
		// was renamed.
		if now, err := r.file.Stat(); err == nil && now.Size() > r.at {
			_ = f.Close()
			return true, nil
		}
		r.use(f, 0)
		return true, nil
	}
	return false, nil
}

// find returns the current number of the part, or -1 if it is no longer one.
func (r *Reader) find(fi fs.FileInfo) int {
	for i := range parts {
		if other, err := os.Stat(r.part(i)); err == nil && os.SameFile(fi, other) {
			return i
		}
	}
	return -1
}

// after opens the oldest part that is newer than part k; for a file that is no
// longer a part (k is -1), the oldest that was written after it, otherwise the
// newest. It returns nil if there is none.
func (r *Reader) after(k int, mine fs.FileInfo) (*os.File, error) {
	from := k - 1
	if k < 0 {
		from = parts - 1
	}
	for i := from; i >= 0; i-- {
		f, err := regular.Open(r.part(i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		if k < 0 && i > 0 {
			if fi, err := f.Stat(); err != nil || !fi.ModTime().After(mine.ModTime()) {
				_ = f.Close()
				continue
			}
		}
		return f, nil
	}
	return nil, nil
}

// Watch starts watching for changes; call it before the last Read before Wait,
// so that no change is missed. The log's directory must exist.
func (r *Reader) Watch() error {
	r.wrote, r.ended = make(chan struct{}, 1), make(chan struct{}, 1)
	dir := filepath.Dir(r.path)
	stop, err := r.dirs.Watch(dir, r.heard)
	if err != nil {
		return fmt.Errorf("watch the log: %w", err)
	}
	r.stops = append(r.stops, stop)
	// Only the parent reports the removal of the directory itself.
	if stop, err := r.dirs.Watch(filepath.Dir(dir), r.heard); err == nil {
		r.stops = append(r.stops, stop)
	}
	return nil
}

func (r *Reader) heard(e dirwatch.Event) {
	dir := filepath.Dir(r.path)
	c := r.wrote
	switch {
	case e.Lost, e.Poll:
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			c = r.ended
		}
	case e.Name == dir && e.Gone:
		c = r.ended
	case !ours(r.path, e.Name):
		return
	}
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wait returns when there may be more to read. Once the log's directory has
// been removed it returns io.EOF.
func (r *Reader) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.wrote:
		return nil
	case <-r.ended:
		return io.EOF
	}
}

// ours reports whether a change concerns the log itself rather than other files
// next to it.
func ours(path, name string) bool {
	if name == path {
		return true
	}
	for i := 1; i < parts; i++ {
		if name == path+"."+strconv.Itoa(i) {
			return true
		}
	}
	return false
}

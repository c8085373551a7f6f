// Package regular opens files of a team's directory, which any program may
// replace. Opening a named pipe waits for its other end, and reading a device
// may never end: neither may block a command that only reads the state of a
// member.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotRegular is the error for a path that leads to anything but a regular
// file.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a file for reading. It never blocks; for anything but a regular
// file the error is ErrNotRegular in an *fs.PathError that names what it is.
// Symbolic links are followed.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile, but never blocks and only opens regular files.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag&^os.O_TRUNC|unix.O_NONBLOCK, perm)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EISDIR) { // a pipe without a reader, a socket, a directory
		if fi, serr := os.Stat(path); serr == nil && !fi.Mode().IsRegular() {
			return nil, notRegular(path, fi)
		}
	}
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = notRegular(path, fi)
	}
	if err == nil && flag&os.O_TRUNC != 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile is os.ReadFile for regular files.
func ReadFile(path string) (data []byte, err error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(f)
}

func notRegular(path string, fi fs.FileInfo) error {
	kind := "a special file"
	switch fi.Mode().Type() {
	case fs.ModeDir:
		kind = "a directory"
	case fs.ModeNamedPipe:
		kind = "a named pipe"
	case fs.ModeSocket:
		kind = "a socket"
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		kind = "a device"
	default:
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w but %s", ErrNotRegular, kind)}
}

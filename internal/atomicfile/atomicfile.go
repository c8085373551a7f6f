// Package atomicfile replaces a file atomically: every reader, even after a
// kill -9 or on a full disk, finds the old content or the new one.
package atomicfile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tempMark is part of the name of every temporary file: .<name>.tmp-<16 hex
// digits>. The leading dot hides them from watchers and listings.
const tempMark = ".tmp-"

// Write replaces path by data with mode perm (regardless of the umask). With
// sync the data and the new name are on disk when it returns; without, they
// survive the death of any process but not of the machine. If path is a symlink
// the link is replaced; its target is not touched. After any error the old file
// is unchanged and the temporary file is removed.
func Write(path string, data []byte, perm fs.FileMode, sync bool) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = root.Close() }() // only used for its names
	if err := WriteRoot(root, filepath.Base(path), data, perm, sync); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteNew writes a text to a file of its own, PREFIX-*.txt with mode 0600, in dir, which it creates
// if it is missing. The text is on disk when it returns the path.
func WriteNew(dir, prefix, text string) (path string, err error) {
	return writeText(dir, prefix+"-"+rand.Text(), text)
}

// WriteNamed is WriteNew for a text that may come again: the file is named after name and the text, so
// that the same text under the same name is in one file. A name is any text.
func WriteNamed(dir, prefix, name, text string) (path string, err error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%d:%s%s", len(name), name, text) // a hash never fails
	return writeText(dir, fmt.Sprintf("%s-%x", prefix, sum.Sum(nil)[:16]), text)
}

func writeText(dir, name, text string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make %s: %w", dir, err)
	}
	path = filepath.Join(dir, name+".txt")
	return path, Write(path, []byte(text), 0o600, true)
}

// WriteRoot is Write for the plain file name in an open directory.
func WriteRoot(root *os.Root, name string, data []byte, perm fs.FileMode, sync bool) error {
	tmp, err := writeTemp(root, name, data, perm, sync)
	if err != nil {
		return err
	}
	if err := root.Rename(tmp, name); err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	if !sync {
		return nil
	}
	return SyncDir(root)
}

func writeTemp(root *os.Root, name string, data []byte, perm fs.FileMode, sync bool) (tmp string, err error) {
	f, tmp, err := createTemp(root, name)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Remove(tmp))
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	// A failed close is a failed write: some file systems report a full disk
	// there.
	return tmp, errors.Join(err, f.Close())
}

func createTemp(root *os.Root, name string) (*os.File, string, error) {
	for range 100 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		tmp := "." + name + tempMark + hex.EncodeToString(b[:])
		f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		return f, tmp, err
	}
	return nil, "", fmt.Errorf("no free temporary name for %s: %w", name, fs.ErrExist)
}

// SyncDir writes the names in an open directory to disk.
func SyncDir(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// IsTemp reports whether a file name is that of a temporary file of this
// package.
func IsTemp(name string) bool {
	i := strings.LastIndex(name, tempMark)
	if i < 1 || name[0] != '.' {
		return false
	}
	tail := name[i+len(tempMark):]
	_, err := hex.DecodeString(tail)
	return err == nil && len(tail) == 16
}

// SweepTemp removes the temporary files in dir that are older than olderThan,
// left by killed writers. It returns how many it removed; a missing directory
// has none. The age protects the file of a live writer.
func SweepTemp(dir string, olderThan time.Duration) (int, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("sweep %s: %w", dir, err)
	}
	limit := time.Now().Add(-olderThan)
	n := 0
	var errs []error
	for _, e := range entries {
		if !e.Type().IsRegular() || !IsTemp(e.Name()) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // its writer finished meanwhile
		}
		if err == nil && info.ModTime().After(limit) {
			continue
		}
		if err == nil {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		switch {
		case err == nil:
			n++
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("sweep %s: %w", dir, err))
		}
	}
	return n, errors.Join(errs...)
}

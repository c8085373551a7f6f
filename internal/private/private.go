// Package private keeps directories of one user closed to other users. A
// directory is private if it belongs to the user, no other user can enter it,
// and no other user can replace it by another directory: each directory above
// it belongs to the user or to root and is not writable by others, unless it
// has the sticky bit.
package private

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/internal/regular"
)

// Refusal is the error for a directory that another user owns, or can change or
// replace.
type Refusal struct {
	Path string   // the offending path
	Why  string   // for people, follows the path
	Mend []string // a command that fixes it; nil if there is none
}

func (r *Refusal) Error() string { return r.Path + " " + r.Why }

// Dir is a directory that must be private.
type Dir struct {
	Path string
	// Links allows the path to end in a symbolic link of the user or of root.
	// Links above it are always allowed.
	Links bool
	// Own reports whether the program that owns the directory has made the file
	// with that name. A directory with other files is not closed to readers.
	// nil: it has made all files.
	Own func(name string) bool
}

// Make makes a directory, and its parent, if they are missing, and secures
// both. The parent may contain other files than dir only if own accepts them.
func Make(dir string, own func(name string) bool) error {
	for _, d := range []Dir{{Path: filepath.Dir(dir), Own: own}, {Path: dir}} {
		if err := d.Secure(); err != nil { // before anything is made below it
			return err
		}
		if err := os.MkdirAll(d.Path, 0o700); err != nil {
			return err
		}
		if err := d.Secure(); err != nil { // another process may have been faster
			return err
		}
	}
	return nil
}

// Check checks the directory and changes nothing. wide are the permissions that
// Secure would remove from others; a directory that does not exist has none. If
// it cannot be made private the error is a *Refusal.
func (d Dir) Check() (wide fs.FileMode, err error) {
	wide, _, err = d.look()
	return wide, err
}

// Secure makes the directory private, if it exists. If that is impossible the
// error is a *Refusal.
func (d Dir) Secure() error {
	wide, real, err := d.look()
	if err != nil || wide == 0 {
		return err
	}
	fi, err := os.Lstat(real)
	if err != nil {
		return err
	}
	err = os.Chmod(real, fi.Mode()&^(fs.ModeType|0o077))
	if now, serr := os.Lstat(real); serr == nil && now.Mode().Perm()&0o022 != 0 { // a file system without modes
		return &Refusal{Path: real, Why: fmt.Sprintf("is writable by other users (%04o)", now.Mode().Perm())}
	}
	if err != nil && !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission) { // a sandbox: not writable for anyone
		return err
	}
	return nil
}

func (d Dir) look() (wide fs.FileMode, real string, err error) {
	real, fi, err := d.resolve()
	if err != nil || fi == nil {
		return 0, real, err
	}
	if uid := owner(fi); uid != os.Geteuid() {
		return 0, real, &Refusal{Path: real, Why: fmt.Sprintf("belongs to user %d", uid)}
	}
	wide = fi.Mode().Perm() & 0o077
	if wide == 0 {
		return 0, real, nil
	}
	return d.wide(real, fi)
}

// wide checks a directory that others can enter.
func (d Dir) wide(real string, fi fs.FileInfo) (fs.FileMode, string, error) {
	writable := fi.Mode().Perm()&0o022 != 0
	if sticky := fi.Mode()&fs.ModeSticky != 0; sticky && writable { // like /tmp: shared on purpose
		return 0, real, &Refusal{Path: real, Why: fmt.Sprintf("is writable by other users (%v)", fi.Mode())}
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return 0, real, err
	}
	own := true
	for _, e := range entries {
		if own = own && (d.Own == nil || d.Own(e.Name())); !writable {
			continue
		}
		if in, err := e.Info(); err == nil && owner(in) != os.Geteuid() {
			return 0, real, &Refusal{Path: filepath.Join(real, e.Name()), Why: fmt.Sprintf("belongs to user %d, and its directory was writable by others (%04o)", owner(in), fi.Mode().Perm())}
		}
	}
	switch {
	case own:
		return fi.Mode().Perm() & 0o077, real, nil
	case writable:
		return 0, real, &Refusal{Path: real, Why: fmt.Sprintf("is writable by other users (%04o)", fi.Mode().Perm()), Mend: []string{"chmod", "go-w", real}}
	}
	return 0, real, nil // the program's own files in it are closed themselves
}

// maxLinks is how many symbolic links of a path are followed, as on Linux.
const maxLinks = 40

// resolve follows the path without links that others have made or could
// replace. fi is nil if nothing exists at the path.
func (d Dir) resolve() (real string, fi fs.FileInfo, err error) {
	abs, err := filepath.Abs(d.Path)
	if err != nil {
		return "", nil, err
	}
	at, rest, links := "/", parts(abs), 0
	for {
		if fi, err = os.Lstat(at); err != nil {
			return at, nil, err
		}
		if len(rest) == 0 {
			return at, fi, nil
		}
		if err := above(at, fi); err != nil {
			return at, nil, err
		}
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		fi, err = os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return next, nil, nil
		case err != nil:
			return next, nil, err
		case fi.Mode()&fs.ModeSymlink == 0:
			if !fi.IsDir() {
				return next, nil, &fs.PathError{Op: "open", Path: next, Err: syscall.ENOTDIR}
			}
			at = next
			continue
		case len(rest) == 0 && links == 0 && !d.Links, links == maxLinks:
			return next, nil, &Refusal{Path: next, Why: "is a symbolic link"}
		case !trusted(owner(fi)):
			return next, nil, &Refusal{Path: next, Why: fmt.Sprintf("is a symbolic link of user %d", owner(fi))}
		}
		links++
		to, err := os.Readlink(next)
		if err != nil {
			return next, nil, err
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(parts(to), rest...)
	}
}

// parts returns the names in a path. It keeps "..", which is relative to the
// target of a link.
func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" || name == "." })
}

// above returns an error for a directory on the way to a private one in which
// other users can rename.
func above(path string, fi fs.FileInfo) error {
	if uid := owner(fi); !trusted(uid) {
		return &Refusal{Path: path, Why: fmt.Sprintf("belongs to user %d, who can replace what is in it", uid)}
	}
	others := fi.Mode().Perm() & 0o022
	if gid := group(fi); gid == owner(fi) || gid == 0 {
		others &^= 0o020 // the group of a single user, or of root
	}
	if others != 0 && fi.Mode()&fs.ModeSticky == 0 {
		r := &Refusal{Path: path, Why: fmt.Sprintf("is writable by other users (%04o), who can replace what is in it", fi.Mode().Perm())}
		if owner(fi) == os.Geteuid() {
			r.Mend = []string{"chmod", "go-w", path}
		}
		return r
	}
	return nil
}

// trusted reports whether a user may own directories above a private one: this
// user and root, even if root is not mapped in this user namespace.
func trusted(uid int) bool {
	return uid == os.Geteuid() || uid == 0 || uid == overflow && !mapped(uid)
}

// ReadFile reads a regular file that only the user and root can write.
func ReadFile(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	return read(f)
}

// ReadInput is ReadFile for a file named by the user, which may also be a pipe
// or a terminal with any owner.
func ReadInput(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return read(f)
}

// read reads a file that other users cannot write, and closes it.
func read(f *os.File) ([]byte, error) {
	defer func() { _ = f.Close() }() // only read, so the error does not matter
	fi, err := f.Stat()
	if err == nil && fi.Mode().IsRegular() {
		err = written(f.Name(), fi)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// written returns an error for a file that another user owns or can write.
func written(path string, fi fs.FileInfo) error {
	if !trusted(owner(fi)) {
		return &Refusal{Path: path, Why: fmt.Sprintf("belongs to user %d", owner(fi))}
	}
	others := fi.Mode().Perm() & 0o022
	if group(fi) == owner(fi) || group(fi) == 0 {
		others &^= 0o020
	}
	if others != 0 {
		return &Refusal{Path: path, Why: fmt.Sprintf("is writable by other users (%04o)", fi.Mode().Perm()), Mend: []string{"chmod", "go-w", path}}
	}
	return nil
}

func owner(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

func group(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}

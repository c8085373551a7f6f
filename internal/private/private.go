// Package private keeps directories of one user closed to the others. A directory is
// private if it belongs to the user, nobody else can enter it, and nobody else can put
// another directory in its place: each directory above it belongs to the user or to
// root and is not writable by others, unless it has the sticky bit.
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

// Refusal is a directory that another user owns, or can change or replace.
type Refusal struct {
	Path string // what is wrong
	Why  string // for a person, after the path
	Mend string // a command that mends it; "" where there is none
}

func (r *Refusal) Error() string { return r.Path + " " + r.Why }

// Dir is a directory that is to be private.
type Dir struct {
	Path string
	// Links allows the path to end in a symbolic link of the user or of root. Links
	// above it are always allowed.
	Links bool
	// Own reports whether a program that keeps the directory has made the file of a
	// name. A directory with other files is not closed to readers. nil: all files are.
	Own func(name string) bool
}

// Make makes a directory, and its parent, where they are missing, and secures both.
// The parent may hold other directories than dir only if own says that they are ours.
func Make(dir string, own func(name string) bool) error {
	for _, d := range []Dir{{Path: filepath.Dir(dir), Own: own}, {Path: dir}} {
		if err := d.Secure(); err != nil { // before anything is made below it
			return err
		}
		if err := os.MkdirAll(d.Path, 0o700); err != nil {
			return err
		}
		if err := d.Secure(); err != nil { // somebody else may have been faster
			return err
		}
	}
	return nil
}

// Check looks at the directory and changes nothing. wide are the permissions that
// Secure would take from others; a directory that does not exist has none. What cannot
// be made private is a *Refusal.
func (d Dir) Check() (wide fs.FileMode, err error) {
	wide, _, err = d.look()
	return wide, err
}

// Secure makes the directory private, if it exists. What cannot be is a *Refusal.
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
	if err != nil && !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission) { // a sandbox: nobody can write to it
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

// wide looks into a directory that others can enter.
func (d Dir) wide(real string, fi fs.FileInfo) (fs.FileMode, string, error) {
	writable := fi.Mode().Perm()&0o022 != 0
	if sticky := fi.Mode()&fs.ModeSticky != 0; sticky && writable { // like /tmp: it is shared on purpose
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
		return 0, real, &Refusal{Path: real, Why: fmt.Sprintf("is writable by other users (%04o)", fi.Mode().Perm()), Mend: "chmod go-w " + real}
	}
	return 0, real, nil // what is ours in it is closed by itself
}

// maxLinks is how many symbolic links of a path are followed, as on Linux.
const maxLinks = 40

// resolve follows the path without links that others have made or could replace. fi is
// nil where nothing is there.
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

// parts are the names of a path. Those with two dots stay: they are about where a link
// leads to.
func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" || name == "." })
}

// above refuses a directory on the way to a private one in which others can rename.
func above(path string, fi fs.FileInfo) error {
	if uid := owner(fi); !trusted(uid) {
		return &Refusal{Path: path, Why: fmt.Sprintf("belongs to user %d, who can replace what is in it", uid)}
	}
	others := fi.Mode().Perm() & 0o022
	if gid := group(fi); gid == owner(fi) || gid == 0 {
		others &^= 0o020 // the group of one user alone, or of root
	}
	if others != 0 && fi.Mode()&fs.ModeSticky == 0 {
		r := &Refusal{Path: path, Why: fmt.Sprintf("is writable by other users (%04o), who can replace what is in it", fi.Mode().Perm())}
		if owner(fi) == os.Geteuid() {
			r.Mend = "chmod go-w " + path
		}
		return r
	}
	return nil
}

// trusted reports whether a user may own what is above our directories: ourselves and
// root, also where root has no number in this user namespace.
func trusted(uid int) bool {
	return uid == os.Geteuid() || uid == 0 || uid == overflow && !mapped(uid)
}

// ReadFile reads a regular file that nobody but the user and root can write.
func ReadFile(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	return read(f)
}

// ReadInput is ReadFile for a file that a person has named, which may be a pipe or a
// terminal too, and those anybody's.
func ReadInput(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return read(f)
}

// read reads a file that nobody else can write, and closes it.
func read(f *os.File) ([]byte, error) {
	defer func() { _ = f.Close() }() // it was only read
	fi, err := f.Stat()
	if err == nil && fi.Mode().IsRegular() {
		err = written(f.Name(), fi)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// written refuses a file that somebody else owns or can write to.
func written(path string, fi fs.FileInfo) error {
	if !trusted(owner(fi)) {
		return &Refusal{Path: path, Why: fmt.Sprintf("belongs to user %d", owner(fi))}
	}
	others := fi.Mode().Perm() & 0o022
	if group(fi) == owner(fi) || group(fi) == 0 {
		others &^= 0o020
	}
	if others != 0 {
		return &Refusal{Path: path, Why: fmt.Sprintf("is writable by other users (%04o)", fi.Mode().Perm()), Mend: "chmod go-w " + path}
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

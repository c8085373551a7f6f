package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const stranger = 65533 // a user that is neither root nor the one running the tests

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Mode().Perm()
}

func mkdir(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func chown(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	if err := os.Lchown(path, stranger, stranger); err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, word string) {
	t.Helper()
	if r := (*Refusal)(nil); !errors.As(err, &r) || !strings.Contains(err.Error(), word) {
		t.Errorf("%v; want a refusal with %q", err, word)
	}
}

func readFile(path string) error {
	_, err := ReadFile(path)
	return err
}

func TestNarrowed(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for _, wide := range []fs.FileMode{0o755, 0o775, 0o777, 0o711} {
		d := Dir{Path: filepath.Join(base, wide.String())}
		mkdir(t, d.Path, wide)
		if got, err := d.Check(); got != wide&0o077 || err != nil {
			t.Errorf("Check of %v: %v, %v", wide, got, err)
		}
		if got := mode(t, d.Path); got != wide {
			t.Errorf("Check has changed the mode to %v", got)
		}
		if err := d.Secure(); err != nil || mode(t, d.Path) != 0o700 {
			t.Errorf("%v became %v, %v", wide, mode(t, d.Path), err)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	d := Dir{Path: filepath.Join(base, "a", "b")}
	if err := d.Secure(); err != nil {
		t.Error(err)
	}
	if err := Make(d.Path, nil); err != nil || mode(t, d.Path) != 0o700 || mode(t, filepath.Dir(d.Path)) != 0o700 {
		t.Errorf("Make: %v", err)
	}
}

// A directory that contains other files is not closed to readers; one in which
// others can write is refused.
func TestSharedDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d")
	mkdir(t, path, 0o755)
	if err := os.WriteFile(filepath.Join(path, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := Dir{Path: path, Own: func(name string) bool { return name == "teams" }}
	if err := d.Secure(); err != nil || mode(t, path) != 0o755 {
		t.Errorf("%v, mode %v", err, mode(t, path))
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	refused(t, d.Secure(), "writable by other users")
	if err := os.Chmod(path, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	refused(t, Dir{Path: path}.Secure(), "writable by other users")
	if got := mode(t, path); got != 0o777 {
		t.Errorf("a directory that is shared on purpose was changed to %v", got)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	theirs := filepath.Join(base, "theirs")
	mkdir(t, theirs, 0o700)
	chown(t, theirs)
	refused(t, Dir{Path: theirs}.Secure(), "belongs to user 65533")
	refused(t, Make(theirs, nil), "belongs to user 65533")
	refused(t, Dir{Path: filepath.Join(theirs, "ours")}.Secure(), "who can replace")
	link := filepath.Join(base, "link")
	mkdir(t, filepath.Join(base, "real"), 0o700)
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	refused(t, Dir{Path: link}.Secure(), "symbolic link")
	if err := (Dir{Path: link, Links: true}).Secure(); err != nil {
		t.Errorf("a link of our own: %v", err)
	}
	if err := os.Lchown(link, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	refused(t, Dir{Path: link, Links: true}.Secure(), "symbolic link of user 65533")
	refused(t, Dir{Path: filepath.Join(link, "below")}.Secure(), "symbolic link of user 65533")
	file := filepath.Join(base, "real", "planted")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	chown(t, file)
	if err := os.Chmod(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	refused(t, Dir{Path: filepath.Dir(file)}.Secure(), "planted belongs to user 65533")
	refused(t, readFile(file), "belongs to user 65533")
}

func TestAbove(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	open := filepath.Join(base, "open")
	mkdir(t, open, 0o777)
	below := Dir{Path: filepath.Join(open, "d")}
	refused(t, below.Secure(), "who can replace what is in it")
	mkdir(t, below.Path, 0o700)
	refused(t, below.Secure(), "who can replace what is in it")
	if err := os.Chmod(open, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := below.Secure(); err != nil {
		t.Errorf("below a directory like /tmp: %v", err)
	}
	loop := filepath.Join(base, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	refused(t, Dir{Path: loop, Links: true}.Secure(), "symbolic link")
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Dir{Path: file}).Secure(); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
	if err := readFile(file); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(file, 0o606); err != nil {
		t.Fatal(err)
	}
	refused(t, readFile(file), "writable by other users")
	if err := readFile(filepath.Join(base, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

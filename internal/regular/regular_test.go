package regular

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/strays"
)

// Only regular files are opened, and no open blocks.
func TestOnlyRegularFiles(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp(strays.Short(), "tc-reg") // a socket path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := os.Symlink("pipe", at("link")); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{
		at("pipe"): "a named pipe", at("link"): "a named pipe", at("dir"): "a directory", at("socket"): "a socket", os.DevNull: "a device",
	} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_APPEND} {
			f, err := OpenFile(path, flag, 0)
			if f != nil || !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), kind) {
				t.Errorf("open %s with %d: %v, %v; want it called %s", path, flag, f, err, kind)
			}
		}
		if _, err := ReadFile(path); !errors.Is(err, ErrNotRegular) {
			t.Errorf("read %s: %v", path, err)
		}
	}
}

// For a regular file, and a missing one, the result is that of package os.
func TestRegularFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if _, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	for i, flag := range []int{os.O_TRUNC, os.O_APPEND, os.O_TRUNC} {
		f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("ab"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		want := []string{"ab", "abab", "ab"}[i]
		if data, err := ReadFile(path); err != nil || string(data) != want {
			t.Errorf("%q, %v; want %q", data, err, want)
		}
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Mode() != 0o600 {
		t.Errorf("mode %v, %v", fi, err)
	}
}

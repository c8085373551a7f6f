package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestWriteReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f.json")
	for _, tc := range []struct {
		data string
		perm fs.FileMode
		sync bool
	}{{"one", 0o600, true}, {"", 0o644, false}, {"three", 0o666, true}} {
		if err := Write(path, []byte(tc.data), tc.perm, tc.sync); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != tc.data {
			t.Errorf("read %q, %v; want %q", got, err, tc.data)
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != tc.perm {
			t.Errorf("mode %v, want %v", st.Mode().Perm(), tc.perm)
		}
	}
	only(t, filepath.Dir(path), "f.json")
}

func TestWriteReplacesASymlinkNotItsTarget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, []byte("new"), 0o600, false); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "keep" {
		t.Errorf("target is %q, %v", got, err)
	}
	if st, err := os.Lstat(link); err != nil || !st.Mode().IsRegular() {
		t.Errorf("link is %v, %v", st, err)
	}
}

func TestFailedWriteLeavesTheOldFileAndNoLitter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "d", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "d"), []byte("x"), 0o600, true); err == nil {
		t.Error("a directory was replaced")
	}
	if err := Write(filepath.Join(dir, "none", "f"), nil, 0o600, false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	only(t, dir, "d")
}

func TestFullDiskLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.json")
	if err := Write(path, []byte("old"), 0o600, true); err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	small := was
	small.Cur = 4096
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Skipf("no file size limit here: %v", err)
	}
	err := Write(path, make([]byte, 1<<20), 0o600, true)
	if e := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); e != nil {
		t.Fatal(e)
	}
	if err == nil {
		t.Fatal("wrote past the limit")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("file is %q, %v", got, err)
	}
	only(t, filepath.Dir(path), "f.json")
}

func TestSweepTemp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{
		".f.json.tmp-0123456789abcdef", // old: removed
		".g.tmp-0123456789abcdef",      // new: stays
		".f.json.tmp-nothex0000000000", // not a temporary file
		"f.tmp-0123456789abcdef",       // not a temporary file
		"f.json",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name[1] != 'g' {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	n, err := SweepTemp(dir, time.Minute)
	if n != 1 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	only(t, dir, ".f.json.tmp-nothex0000000000", ".g.tmp-0123456789abcdef", "f.json", "f.tmp-0123456789abcdef")
	if n, err := SweepTemp(filepath.Join(dir, "none"), 0); n != 0 || err != nil {
		t.Errorf("missing directory: %d, %v", n, err)
	}
}

// only checks that dir contains exactly these names, sorted.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(got) != len(want) {
		t.Fatalf("directory has %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("directory has %q, want %q", got, want)
		}
	}
}

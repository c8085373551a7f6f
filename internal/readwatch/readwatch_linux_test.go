package readwatch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begin watches a directory.
func begin(t *testing.T, dir string) (*Watcher, chan Event) {
	t.Helper()
	seen := make(chan Event, 1000)
	w, err := Watch(dir, func(e Event) { seen <- e })
	must(t, err)
	return w, seen
}

// reads returns the files of the reads among the events so far.
func reads(w *Watcher, seen chan Event) (names []string) {
	w.Flush()
	for len(seen) > 0 {
		if e := <-seen; !e.Written {
			names = append(names, e.Name)
		}
	}
	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWatch: reads are reported with the name of the file, also by a process that leaves no access
// time; what opens a file for writing is not reported as a reader, and nothing is reported after
// Close.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, seen := begin(t, dir)
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte("text"), 0o600))
		for flag, want := range map[int][]string{os.O_RDONLY: {name}, os.O_RDONLY | unix.O_NOATIME: {name}, os.O_RDWR: nil} {
			f, err := os.OpenFile(path, flag, 0)
			must(t, err)
			_, err = io.ReadAll(f)
			must(t, errors.Join(err, f.Close()))
			if got := reads(w, seen); !slices.Equal(got, want) {
				t.Errorf("opened with %#x: reported %q, want %q", flag, got, want)
			}
		}
	}
	_, err := os.ReadDir(dir)
	must(t, err)
	w.Close()
	_, err = os.ReadFile(filepath.Join(dir, "a"))
	must(t, err)
	if got := reads(w, seen); len(got) > 0 {
		t.Errorf("more reports, want none: %q", got)
	}
}

// TestReadBeforeAWrite: a file that was opened before it was replaced is not reported as read when
// it is closed, and a write is reported in its place among the reads.
func TestReadBeforeAWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	must(t, os.WriteFile(path, []byte("text"), 0o600))
	w, seen := begin(t, dir)
	defer w.Close()
	old, err := os.Open(path)
	must(t, err)
	must(t, os.WriteFile(path+".tmp", []byte("next"), 0o600))
	must(t, os.Rename(path+".tmp", path))
	must(t, old.Close())
	w.Flush()
	wrote := false
	for len(seen) > 0 {
		e := <-seen
		if !e.Written {
			t.Errorf("reported %+v", e)
		}
		wrote = wrote || e.Name == "a"
	}
	if !wrote {
		t.Error("the write is not reported")
	}
	_, err = os.ReadFile(path)
	must(t, err)
	if got := reads(w, seen); !slices.Equal(got, []string{"a"}) {
		t.Errorf("reported %q", got)
	}
}

func TestWatchOfNothing(t *testing.T) {
	t.Parallel()
	if _, err := Watch(filepath.Join(t.TempDir(), "missing"), func(Event) {}); err == nil {
		t.Error("a missing directory was watched")
	}
}

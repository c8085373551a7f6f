package readwatch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWatch: reads are reported with the name of the file, writes are not, and nothing is reported
// after Close.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seen := make(chan string, 100)
	w, err := Watch(dir, func(name string) { seen <- name })
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		if got := <-seen; got != name {
			t.Errorf("reported %q, want %q", got, name)
		}
	}
	if _, err := os.ReadDir(dir); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := os.ReadFile(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if n := len(seen); n > 0 {
		t.Errorf("%d more reports, want none: %q", n, <-seen)
	}
}

func TestWatchOfNothing(t *testing.T) {
	t.Parallel()
	if _, err := Watch(filepath.Join(t.TempDir(), "missing"), func(string) {}); err == nil {
		t.Error("a missing directory was watched")
	}
}

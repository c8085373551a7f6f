package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLogOnALimitedFile covers a partial write.
func TestLogOnALimitedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8192"); err != nil {
		t.Skipf("mount a small file system: %v", err)
	}
	defer func() { _ = unix.Unmount(dir, 0) }()
	path := filepath.Join(dir, "output.log")
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 5 {
		_, _ = l.Write([]byte(strings.Repeat("x", 2999) + "\n"))
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	lost := 15_000 - fi.Size()
	if lost < 1000 || l.lost != lost {
		t.Errorf("lost %d with %d bytes in the file", l.lost, fi.Size())
	}
	if err := os.Truncate(path, 0); err != nil { // make space
		t.Fatal(err)
	}
	_, _ = l.Write([]byte("after\n"))
	if got := read(t, path); !strings.Contains(got, fmt.Sprintf("%d bytes of output were lost here", lost)) || !strings.HasSuffix(got, "after\n") {
		t.Errorf("log %q", got)
	}
}

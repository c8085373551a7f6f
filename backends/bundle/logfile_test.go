package bundle

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/timeindex"
)

func openTestLog(t *testing.T, max int64) (*LogFile, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "output.log")
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	l.max = max
	t.Cleanup(func() { _ = l.Close() })
	return l, path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLogRotates(t *testing.T) {
	t.Parallel()
	l, path := openTestLog(t, 100)
	for i := range 40 {
		_, _ = fmt.Fprintf(l, "line %04d\n", i)
	}
	if all := read(t, path+".2") + read(t, path+".1") + read(t, path); all != lines(10, 40) {
		t.Errorf("kept %q", all)
	}
	if _, err := os.Stat(path + ".3"); err == nil {
		t.Error("more is kept than should be")
	}
	for _, p := range []string{path, path + ".1", path + ".2"} {
		if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", p, fi, err)
		}
	}
	if got := Tail(path); !strings.HasPrefix(got, "line 0020") || !strings.HasSuffix(got, "line 0039") {
		t.Errorf("tail across the rotation: %q", got)
	}
	// The next generation continues where this one ended.
	_ = l.Close()
	m, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = m.Write([]byte("more\n"))
	_ = m.Close()
	if got := read(t, path); got != lines(30, 40)+"more\n" {
		t.Errorf("after opening again: %q", got)
	}
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		_, _ = fmt.Fprintf(&b, "line %04d\n", i)
	}
	return b.String()
}

// TestLogOnAFullDisk checks that bytes that do not fit are counted, and
// reported when there is space.
func TestLogOnAFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	l, path := openTestLog(t, 1000)
	_, _ = l.Write([]byte("before\n"))
	good := l.f
	l.f = full
	for range 3 {
		if n, err := l.Write([]byte("0123456789")); n != 10 || err != nil {
			t.Errorf("write on a full disk: %d, %v", n, err)
		}
	}
	if l.lost != 30 {
		t.Errorf("lost %d", l.lost)
	}
	l.f = good
	_, _ = l.Write([]byte("after\n"))
	want := "before\n\r\n[teamctl: 30 bytes of output were lost here: no space left on device]\r\nafter\n"
	if got := read(t, path); got != want {
		t.Errorf("log %q; want %q", got, want)
	}
	l.Lose(5, syscall.EIO)
	if got := read(t, path); !strings.HasSuffix(got, "[teamctl: 5 bytes of output were lost here: input/output error]\r\n") {
		t.Errorf("log %q", got)
	}
}

func TestLogIsRemoved(t *testing.T) {
	t.Parallel()
	l, path := openTestLog(t, 1000)
	_, _ = l.Write([]byte("one\n"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, _ = l.Write([]byte("two\n"))
	if got := read(t, path); got != "two\n" {
		t.Errorf("log %q", got)
	}
	if err := os.Symlink("/etc/passwd", path+".link"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(path + ".link"); err == nil {
		t.Error("a symbolic link was followed")
	}
}

func TestLogOfManyWriters(t *testing.T) {
	t.Parallel()
	l, path := openTestLog(t, 1<<20)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 100 {
				_, _ = fmt.Fprintf(l, "writer %d\n", i)
			}
		})
	}
	wg.Wait()
	_ = l.Close()
	if n, err := l.Write([]byte("late")); n != 4 || err != nil {
		t.Errorf("after close: %d, %v", n, err)
	}
	if n := strings.Count(read(t, path), "\n"); n != 400 {
		t.Errorf("%d lines", n)
	}
}

// The index is rotated with the log, and finds times in every part.
func TestLogTimes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	l.max = 1000
	chunk := bytes.Repeat([]byte("x"), 400)
	for range 10 {
		_, _ = l.Write(chunk)
	}
	for i, want := range []bool{true, true, true, false} {
		name := path
		if i > 0 {
			name = fmt.Sprint(path, ".", i)
		}
		_, err := os.Stat(name)
		_, ierr := os.Stat(timeindex.Path(name))
		if (err == nil) != want || (ierr == nil) != want {
			t.Errorf("%s: %v, index %v; want there: %v", name, err, ierr, want)
		}
		if !want {
			continue
		}
		if off, _, known := timeindex.Since(name, time.Now().Add(-time.Minute)); off != 0 || !known {
			t.Errorf("%s: since a minute ago: %d %v", name, off, known)
		}
	}
	// After a truncation the log does not count as full at its old length.
	_, _ = l.Write(chunk)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, _ = l.Write(chunk)
	_, _ = l.Write(chunk)
	if fi, err := os.Stat(path); err != nil || fi.Size() != 800 {
		t.Errorf("after a cut: %d, %v", fi.Size(), err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

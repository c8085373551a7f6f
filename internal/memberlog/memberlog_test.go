package memberlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/timeindex"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func turn(t *testing.T, path string) {
	t.Helper()
	for i := parts - 1; i > 0; i-- {
		from := New(path).part(i - 1)
		if err := os.Rename(from, New(path).part(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		timeindex.Rotate(from, New(path).part(i))
	}
}

func all(t *testing.T, r *Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func reader(t *testing.T, path string) *Reader {
	t.Helper()
	r := New(path)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := New(path).Start(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no log: %v", err)
	}
	r := reader(t, path)
	if got := all(t, r); got != "" {
		t.Errorf("%q", got)
	}
	put(t, path+".2", "a\n")
	put(t, path+".1", "b\nhal")
	put(t, path, "f\nd")
	if got := all(t, r); got != "a\nb\nhalf\nd" {
		t.Errorf("%q", got)
	}
	if got := all(t, r); got != "" {
		t.Errorf("read twice: %q", got)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat(strings.Repeat("x", 999)+"\n", 100) // more than one block
	for _, c := range []struct {
		old, newer, text string
		n                int
		want             string
	}{
		{"", "", "a\nb\nc\n", 2, "b\nc\n"},
		{"", "", "a\nb\nc", 2, "b\nc"},
		{"", "", "a\nb\nc\n", 9, "a\nb\nc\n"},
		{"", "", "a\nb\n", 0, ""},
		{"", "", "", 3, ""},
		{"", "", "\n\n\n", 2, "\n\n"},
		{"", "", long, 50, long[50_000:]},
		{"a\nb\n", "c\nd\n", "e\n", 1, "e\n"},
		{"a\nb\n", "c\nd\n", "e\n", 2, "d\ne\n"},
		{"a\nb\n", "c\nd\n", "e\n", 4, "b\nc\nd\ne\n"},
		{"a\nb\n", "c\nd\n", "e\n", 99, "a\nb\nc\nd\ne\n"},
		{"a\n", "b\nhal", "f\nd\n", 2, "half\nd\n"}, // a line across two parts is one line
		{"a\n", "b\nhal", "f\nd\n", 3, "b\nhalf\nd\n"},
		{"a\n", "b\n", "", 1, "b\n"},
	} {
		put(t, path+".2", c.old)
		put(t, path+".1", c.newer)
		put(t, path, c.text)
		r := reader(t, path)
		if err := r.StartTail(c.n); err != nil {
			t.Fatal(err)
		}
		if got := all(t, r); got != c.want {
			t.Errorf("tail %d of %.20q %.20q %.20q: %.20q, want %.20q", c.n, c.old, c.newer, c.text, got, c.want)
		}
	}
	if err := New(path + "x").StartTail(3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no log: %v", err)
	}
}

// indexed writes a part whose lines were written at the given times.
func indexed(t *testing.T, path string, lines ...time.Time) {
	t.Helper()
	w, err := timeindex.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, at := range lines {
		w.Note(int64(len(text)), at)
		text += fmt.Sprintf("%-100s\n", at.Format("15:04"))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, path, text)
	last := lines[len(lines)-1]
	if err := os.Chtimes(path, last, last); err != nil {
		t.Fatal(err)
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	noon := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	at := func(min int) time.Time { return noon.Add(time.Duration(min) * time.Minute) }
	indexed(t, path+".2", at(0), at(1))
	indexed(t, path+".1", at(2), at(3), at(4))
	indexed(t, path, at(10), at(11))
	for min, want := range map[int]string{
		-5: "12:00 12:01 12:02 12:03 12:04 12:10 12:11",
		1:  "12:00 12:01 12:02 12:03 12:04 12:10 12:11", // up to a pause too early, never too late
		2:  "12:02 12:03 12:04 12:10 12:11",
		4:  "12:04 12:10 12:11",
		6:  "12:10 12:11",
		11: "12:11",
		20: "",
	} {
		r := reader(t, path)
		if err := r.StartSince(at(min)); err != nil {
			t.Fatal(err)
		}
		got := strings.Fields(all(t, r))
		if min == 1 { // exactly at a record: earlier output may be of the same second
			if len(got) < 6 || got[len(got)-6] != "12:01" {
				t.Errorf("since %d: %q", min, got)
			}
			continue
		}
		if strings.Join(got, " ") != want {
			t.Errorf("since %d: %q, want %q", min, got, want)
		}
	}
	for i := range parts { // without an index: whole parts, by their times
		if err := os.Remove(timeindex.Path(New(path).part(i))); err != nil {
			t.Fatal(err)
		}
	}
	r := reader(t, path)
	if err := r.StartSince(at(4)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(all(t, r)), " "); got != "12:02 12:03 12:04 12:10 12:11" {
		t.Errorf("%q", got)
	}
}

// Between two reads the log may be rotated once, twice, or so often that the
// part being read is deleted; it may be truncated, replaced or removed.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(t *testing.T, path string)
		want string
	}{
		{"it grows", func(t *testing.T, p string) { add(t, p, "more\n") }, "more\n"},
		{"turned once", func(t *testing.T, p string) { add(t, p, "1\n"); turn(t, p); add(t, p, "2\n") }, "1\n2\n"},
		{"turned, nothing new yet", func(t *testing.T, p string) { add(t, p, "1\n"); turn(t, p) }, "1\n"},
		{"turned twice", func(t *testing.T, p string) { turn(t, p); add(t, p, "1\n"); turn(t, p); add(t, p, "2\n") }, "1\n2\n"},
		{"turned away", func(t *testing.T, p string) {
			for i := range 5 {
				turn(t, p)
				add(t, p, fmt.Sprint(i, "\n"))
				late := time.Now().Add(time.Duration(i+1) * time.Second)
				if err := os.Chtimes(p, late, late); err != nil {
					t.Fatal(err)
				}
			}
		}, "2\n3\n4\n"},
		{"cut", func(t *testing.T, p string) { put(t, p, "cut\n") }, "cut\n"},
		{"replaced", func(t *testing.T, p string) {
			put(t, p+".new", "other\n")
			if err := os.Rename(p+".new", p); err != nil {
				t.Fatal(err)
			}
		}, "other\n"},
		{"removed and made anew", func(t *testing.T, p string) {
			if err := os.Remove(p); err != nil {
				t.Fatal(err)
			}
			add(t, p, "anew\n")
		}, "anew\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			put(t, path+".1", "old\n")
			past := time.Now().Add(-time.Hour)
			if err := os.Chtimes(path+".1", past, past); err != nil {
				t.Fatal(err)
			}
			put(t, path, "first line\n")
			r := reader(t, path)
			if got := all(t, r); got != "old\nfirst line\n" {
				t.Fatalf("%q", got)
			}
			c.do(t, path)
			if got := all(t, r); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A reader that follows a writer that rotates its log all the time misses
// nothing and reads nothing twice, as long as it is not two whole parts behind.
func TestFollowsThroughTurns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	r := reader(t, path)
	if err := r.Watch(); err != nil {
		t.Fatal(err)
	}
	const lines, perPart = 5000, 50
	taken := make(chan int, 1) // progress of the reader: the writer stays less than a part ahead
	go func() {
		far := 0
		for i := range lines {
			for i > far+perPart/2 {
				far = <-taken
			}
			if i%perPart == 0 {
				turn(t, path)
			}
			add(t, path, fmt.Sprint(i, "\n"))
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	want, rest := 0, ""
	for want < lines {
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		rest += string(b)
		for {
			l, after, ok := strings.Cut(rest, "\n")
			if !ok {
				break
			}
			if l != fmt.Sprint(want) {
				t.Fatalf("line %q, want %d", l, want)
			}
			rest = after
			want++
		}
		select {
		case <-taken:
		default:
		}
		taken <- want
		if want == lines {
			break
		}
		if err := r.Wait(ctx); err != nil {
			t.Fatalf("after line %d: %v", want, err)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	t.Run("events", func(t *testing.T) {
		t.Parallel()
		testWait(t, nil)
	})
	t.Run("no events left", func(t *testing.T) {
		t.Parallel()
		testWait(t, func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE })
	})
}

func testWait(t *testing.T, open func() (*fsnotify.Watcher, error)) {
	dir := filepath.Join(t.TempDir(), "member")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := reader(t, filepath.Join(dir, "log"))
	r.dirs.Open, r.dirs.Every = open, time.Millisecond
	if err := r.Watch(); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "proc.json"), "{}") // wakes no reader
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Wait(ctx); open == nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("woken by another file: %v", err)
	}
	put(t, filepath.Join(dir, "log"), "x\n")
	if err := r.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if got := all(t, r); got != "x\n" {
		t.Errorf("%q", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for {
		err := r.Wait(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := New("/no/such/log").Watch(); err == nil {
		t.Error("a directory that does not exist is watched")
	}
}

package timeindex

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// write makes a file and its index: each entry is a write of so many bytes at a
// time, in seconds after the start.
func write(t *testing.T, entries ...[2]float64) (string, time.Time) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f")
	start := time.UnixMilli(1_700_000_000_000)
	w, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, e := range entries {
		w.Note(size, start.Add(time.Duration(e[1]*float64(time.Second))))
		size += int64(e[0])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Note(1, start) // after Close: dropped
	if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, start
}

func TestSince(t *testing.T) {
	t.Parallel()
	file, start := write(t,
		[2]float64{100, 0}, [2]float64{100, 0.5}, [2]float64{100, 1}, [2]float64{100, 2}, [2]float64{10, 3}, [2]float64{100, 3.5},
		[2]float64{5, 1000}, [2]float64{100, 2000})
	for _, c := range []struct {
		at     float64
		offset int64
		whole  bool
	}{
		{-10, 0, true},
		{0, 0, true},
		{0.7, 0, false}, // the resolution is a second
		{1, 0, false},   // content of the same second may precede the record
		{1.5, 200, false},
		{2.5, 300, false},
		{500, 510, false}, // nothing was written between 3.5 and 1000
		{1000, 510, false},
		{1500, 515, false},
		{2001, 515, false},
		{3000, 615, false}, // the end
	} {
		off, whole, known := Since(file, start.Add(time.Duration(c.at*float64(time.Second))))
		if off != c.offset || whole != c.whole || !known {
			t.Errorf("%v: %d %v %v; want %d %v", c.at, off, whole, known, c.offset, c.whole)
		}
	}
}

func TestSinceCut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	now := time.UnixMilli(1_700_000_000_000)
	w, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	w.Note(0, now)
	w.Note(5000, now.Add(10*time.Second))
	w.Note(0, now.Add(100*time.Second)) // after a truncation, noted although little was written
	w.Note(700, now.Add(200*time.Second))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if off, whole, known := Since(file, now.Add(5*time.Second)); off != 0 || !whole || !known {
		t.Errorf("%d %v %v", off, whole, known)
	}
	if off, whole, known := Since(file, now.Add(150*time.Second)); off != 700 || whole || !known {
		t.Errorf("%d %v %v", off, whole, known)
	}
}

func TestTornAndMissing(t *testing.T) {
	t.Parallel()
	file, start := write(t, [2]float64{100, 0}, [2]float64{100, 5})
	b, err := os.ReadFile(Path(file))
	if err != nil || len(b) != 2*recordSize {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if err := os.WriteFile(Path(file), append(b, 1, 2, 3), 0o600); err != nil {
		t.Fatal(err)
	}
	if off, _, known := Since(file, start.Add(time.Hour)); off != 200 || !known {
		t.Errorf("torn: %d %v", off, known)
	}
	w, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	w.Note(200, start.Add(time.Minute))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(Path(file)); err != nil || len(b) != 3*recordSize {
		t.Errorf("after mending: %d bytes, %v", len(b), err)
	}
	if _, whole, known := Since(file+"x", start); known || !whole {
		t.Error("a missing index knows something")
	}
	Rotate(file, file+".1")
	if _, _, known := Since(file+".1", start); !known {
		t.Error("the index did not move")
	}
	Rotate(file, file+".1") // there is none now, so the old one must not stay
	if _, _, known := Since(file+".1", start); known {
		t.Error("the index of another file stayed")
	}
	if w, err := Open(filepath.Join(t.TempDir(), "no", "f")); err == nil || w == nil {
		t.Errorf("%v, %v", w, err)
	} else {
		w.Note(0, start)
	}
}

func TestFewBytesFewRecords(t *testing.T) {
	t.Parallel()
	entries := make([][2]float64, 1000)
	for i := range entries {
		entries[i] = [2]float64{1, float64(i)}
	}
	file, _ := write(t, entries...)
	if fi, err := os.Stat(Path(file)); err != nil || fi.Size() > 40*recordSize {
		t.Errorf("%d bytes of index for 1000 of output, %v", fi.Size(), err)
	}
}

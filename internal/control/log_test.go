package control

import (
	"os"
	"path/filepath"
	"testing"
)

// A log of a supervisor that is long is kept once, and a new one begun.
func TestOpenLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "supervisor.log")
	write := func(text string, size int64) {
		t.Helper()
		f, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Error(err)
		}
		if size > 0 {
			if err := f.Truncate(size); err != nil {
				t.Error(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	read := func(path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return string(data[:min(len(data), 6)])
	}
	write("one", 0)
	write("two", logMost+1)
	write("three", 0)
	write("four", logMost+1)
	if got := read(path + ".1"); got != "onetwo" {
		t.Errorf("kept: %q", got)
	}
	write("five", 0)
	if now, kept := read(path), read(path+".1"); now != "five" || kept != "threef" {
		t.Errorf("%q, and %q is kept", now, kept)
	}
}

package inbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/internal/filelock"
)

// The file that names the holder of a mailbox is only informative, whatever its
// content: it names a living process or none, and no lock depends on it.
func FuzzOwner(f *testing.F) {
	for _, s := range []string{"", "1\n", "0\n", "-1\n", "2147483648\n", "99999999999999999999\n", "12 34\n", "\x00\x01", "1", "+1\n", " 1\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, dir := newBox(t)
		if err := os.MkdirAll(filepath.Join(dir, "locks"), 0o700); err != nil {
			t.Fatal(err)
		}
		held, err := filelock.Lock(t.Context(), b.guard)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.pid, data, 0o600); err != nil {
			t.Fatal(err)
		}
		pid, ok, err := owner(b)
		if err != nil || ok && pid <= 0 || !ok && pid != 0 {
			t.Errorf("%q: %d, %v, %v", data, pid, ok, err)
		}
		if err := held.Unlock(); err != nil {
			t.Fatal(err)
		}
		hide := b.showOwner()
		if err := b.Append(t.Context(), Entry{From: "a", Text: "1"}); err != nil {
			t.Errorf("%q: %v", data, err)
		}
		hide()
		if _, err := b.Repair(t.Context()); err != nil { // a long hold, which writes the file
			t.Errorf("%q: %v", data, err)
		}
	})
}

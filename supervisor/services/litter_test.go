package services

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// The file of a writer that was killed while writing a secret is removed once no running writer
// can use it.
func TestLitterOfBundlesIsSwept(t *testing.T) {
	t.Parallel()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	dir := string(l.Bundle("a"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, f := range []struct {
		name       string
		aged, kept bool
	}{
		{".token.tmp-0123456789abcdef", true, false},
		{".token.tmp-0123456789abcdee", false, true},
		{"exit.json.123.tmp", true, false},
		{"exit.json.124.tmp", false, true},
		{"token", true, true},
	} {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if f.aged {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() {
			if _, err := os.Lstat(path); (err == nil) != f.kept {
				t.Errorf("%s: %v; want it kept: %v", f.name, err, f.kept)
			}
		})
	}
	if n, err := sweepBundles(l, time.Minute); n != 2 || err != nil {
		t.Errorf("swept %d, %v; want 2", n, err)
	}
	if n, err := sweepBundles(team.Home{Dir: t.TempDir()}.Team("none"), 0); n != 0 || err != nil {
		t.Errorf("without members: %d, %v", n, err)
	}
}

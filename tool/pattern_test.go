package tool

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Files are found in a home directory whose name has the characters of a pattern.
func TestHomeIsNoPattern(t *testing.T) {
	t.Parallel()
	l := team.Home{Dir: filepath.Join(t.TempDir(), "[a]*")}.Team("demo")
	aside := l.Config() + ".corrupt-1"
	for _, name := range []string{aside, filepath.Join(l.Inboxes(), "ann.json")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("not JSON"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := corrupted(l.Config()); !slices.Equal(got, []string{aside}) {
		t.Errorf("%q", got)
	}
	if n := unreadIn(l); n != 1 { // what cannot be read counts as one
		t.Errorf("%d unread", n)
	}
}

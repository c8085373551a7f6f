package courier

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// A person's own kinds are found in a home directory whose name has the characters of a pattern.
func TestLoadCustomInOddHome(t *testing.T) {
	t.Parallel()
	home := team.Home{Dir: filepath.Join(t.TempDir(), "[a]")}
	if err := os.MkdirAll(filepath.Join(home.Dir, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home.Dir, "agents", "bad.yaml"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadCustom(home); err == nil {
		t.Errorf("%v: the broken file was not read", got)
	}
}

package teamctl_test

import (
	"os"
	"strings"
	"testing"
)

// topLevel has the directories of the top level. Someone who comes to the repository sees
// what the product is from them, so there are few, and what nobody outside uses goes
// below internal/.
var topLevel = map[string]bool{
	"agent": true, "backends": true, "bench": true, "cmd": true, "docs": true,
	"examples": true, "inbox": true, "internal": true, "ledger": true, "mail": true,
	"scripts": true, "supervisor": true, "team": true, "tool": true, "worktree": true,
}

// elsewhere says where the files go that were once in a directory of the top level.
var elsewhere = map[string]string{"changelog": "docs/changelog"}

func TestPlanOfTopLevel(t *testing.T) {
	if len(topLevel) > 15 {
		t.Errorf("the top level may have %d directories, want at most 15", len(topLevel))
	}
	built := map[string]bool{"bin": true, "dist": true} // not part of the repository (.gitignore)
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range entries {
		name := e.Name()
		switch {
		case !e.IsDir() || built[name] || strings.HasPrefix(name, "."):
		case topLevel[name]:
			found++
		case elsewhere[name] != "":
			t.Errorf("%s/ is at the top level; its files belong in %s/", name, elsewhere[name])
		default:
			t.Errorf("%s/ is a new directory at the top level: put it below another one, such as internal/", name)
		}
	}
	if found != len(topLevel) {
		t.Errorf("%d of %d directories exist", found, len(topLevel))
	}
}

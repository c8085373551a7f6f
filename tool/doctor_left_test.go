package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// The doctor does not suggest removing a directory without a ledger among the teams while it
// contains worktrees.
func TestLeftoverWithWorktrees(t *testing.T) {
	t.Parallel()
	l := team.Home{Dir: t.TempDir()}.Team("gone")
	if err := os.MkdirAll(filepath.Join(l.Worktrees(), "ann", "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := noTeamCheck(l)
	if !strings.Contains(c.Detail, "has worktrees: ann") || !strings.Contains(c.Hint, "save the work in them before you remove it") || strings.Contains(c.Hint, "if you do not need it") {
		t.Errorf("%+v", c)
	}
	if err := os.RemoveAll(filepath.Join(l.Worktrees(), "ann")); err != nil {
		t.Fatal(err)
	}
	if c := noTeamCheck(l); c.Hint != "remove it if you do not need it" {
		t.Errorf("%+v", c)
	}
}

package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestTroubleWords checks which errors are of the ledger or its disk.
func TestTroubleWords(t *testing.T) {
	t.Parallel()
	_, missing := os.Open(filepath.Join(t.TempDir(), "x"))
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("x"), ""},
		{team.Errorf(team.CodeConflict, "x"), ""},
		{fmt.Errorf("read: %w", team.Errorf(team.CodeTimeout, "x").WithReason(team.ReasonBusy)), "the ledger is locked"},
		{team.Errorf(team.CodeUnavailable, "x").WithReason("disk_full"), "the disk is full"},
		{team.Errorf(team.CodeUnavailable, "x").WithReason(team.ReasonCorrupt), "the ledger is damaged or missing"},
		{missing, "the team's home is missing"},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, "the team's home cannot be read"},
	} {
		if got := TroubleWords(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

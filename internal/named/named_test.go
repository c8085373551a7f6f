package named

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestInCell(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string][]Test{
		" script `team`; `team` TestNames ":                                {{Dir: Scripts, Name: "TestScripts/team"}, {Dir: "team", Name: "TestNames"}},
		" `a/b` TestX, FuzzY (on a full disk); `c` TestZ ":                 {{Dir: "a/b", Name: "TestX"}, {Dir: "a/b", Name: "FuzzY"}, {Dir: "c", Name: "TestZ"}},
		" `cmd/teamctl` TestScripts/verify, no_tmux.txtar ":                {{Dir: Scripts, Name: "TestScripts/verify"}, {Dir: Scripts, Name: "TestScripts/no_tmux"}},
		" `" + Shared + "` leftovers, at_once (100, or -more); `a` TestX ": {{Dir: Shared, Name: "TestExercise/parts/leftovers"}, {Dir: Shared, Name: "TestExercise/parts/at_once"}, {Dir: "a", Name: "TestX"}},
		" not a test ": nil,
	} {
		if got := inCell(cell); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", cell, got, want)
		}
	}
}

// A malformed table is an error: it would name no test, and nothing would be
// checked any more.
func TestReadWithoutTables(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{"docs/faults.md": {Data: []byte("# Faults\n\n- a list `team` TestX\n")}}
	if _, err := Read(root); err == nil || !strings.Contains(err.Error(), "docs/faults.md: only 0 tests") {
		t.Errorf("err = %v", err)
	}
}

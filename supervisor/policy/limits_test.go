package policy

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends"
)

func TestLimitWarnings(t *testing.T) {
	t.Parallel()
	if w := LimitWarnings(backends.Proc{Limits: backends.Kept{Memory: backends.KeptByCgroup}}); w != nil {
		t.Errorf("a limit that is kept: %q", w)
	}
	w := LimitWarnings(backends.Proc{Limits: backends.Kept{
		Memory: backends.KeptByRlimit, PIDs: backends.KeptByNothing, CPU: backends.KeptByNothing,
	}})
	if len(w) != 3 || !strings.Contains(w[0], "each process") || !strings.Contains(w[1], "nothing keeps") || !strings.Contains(w[2], "cpu") {
		t.Errorf("%q", w)
	}
}

package tui

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestWholeStates checks that the row of a member has its state as a whole wherever it has room for states.
func TestWholeStates(t *testing.T) {
	t.Parallel()
	for _, state := range []team.Observed{team.Completed, team.Failed, team.Backoff, team.Starting} {
		m := shownOf(crowd(8), 100, 36)
		x := *m.memberOf("worker-2")
		m.memberOf("worker-2").State = state
		x.State = state
		for w := 26; w < 90; w++ {
			if line := strip(m.memberItem(x, 10).line(w)); !strings.Contains(line, " "+string(state)+" ") {
				t.Errorf("in %d cells %s is %q", w, state, line)
			}
		}
	}
}

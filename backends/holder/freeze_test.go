package holder

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

func TestFreezeRefused(t *testing.T) {
	t.Parallel()
	l := backends.Launch{Agent: "a"}
	err := Freeze(t.Context(), l, backends.Proc{Uncontained: "no cgroup v2 hierarchy is mounted"}, true)
	if !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != "no_freezer" || !strings.Contains(err.Error(), "no cgroup v2") {
		t.Errorf("%v", err)
	}
	if on, err := Frozen(l, backends.Proc{}); on || err != nil {
		t.Errorf("frozen: %v, %v", on, err)
	}
}

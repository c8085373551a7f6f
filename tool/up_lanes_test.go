package tool

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestUpSetsLanes: a team file sets how many turns of a lane run at once; the next up
// applies a change, and an invalid width changes nothing.
func TestUpSetsLanes(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	file := filepath.Join(t.TempDir(), "teamctl.yaml")
	up := func(lanes string) (UpOut, error) {
		if err := os.WriteFile(file, []byte("team: demo\n"+lanes), 0o600); err != nil {
			t.Fatal(err)
		}
		return r.Env.Up(t.Context(), Person(), UpIn{File: file})
	}
	is := func(what string, subagent, main int) {
		t.Helper()
		for lane, want := range map[team.Lane]int{team.LaneSubagent: subagent, team.LaneMain: main} {
			if got, err := r.settingInt(t.Context(), "lane."+string(lane), 0); err != nil || got != want {
				t.Errorf("%s: %s is %d, %v, want %d", what, lane, got, err, want)
			}
		}
	}
	for _, step := range []struct {
		lanes          string
		subagent, main int
		changes        string
	}{
		{"lanes: {subagent: 2}\n", 2, 0, ChangeAdd}, {"lanes: {subagent: 2}\n", 2, 0, ""},
		{"lanes: {subagent: 3, main: 1}\n", 3, 1, ChangeChange}, {"", 3, 1, ""},
	} {
		out, err := up(step.lanes)
		if err != nil {
			t.Fatal(err)
		}
		is(step.lanes, step.subagent, step.main)
		if step.changes == "" && len(out.Changes) != 0 || step.changes != "" && (len(out.Changes) != 1 || out.Changes[0].Op != step.changes || out.Changes[0].Name != settingLanes) {
			t.Errorf("%q: %+v", step.lanes, out.Changes)
		}
	}
	for _, bad := range []string{"lanes: {subagent: 0}\n", "lanes: {subagent: 1001}\n", "lanes: {subagent: many}\n", "lanes: {sub: 4}\n", "lanes: 4\n"} {
		if _, err := up(bad); !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
		is(bad, 3, 1)
	}
}

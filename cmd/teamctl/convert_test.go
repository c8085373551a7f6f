package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/teamfile"
)

func TestSpawnInFromFile(t *testing.T) {
	t.Setenv("TMUX", "/tmp/x,1,0")
	t.Setenv("TMUX_PANE", "%4")
	got := spawnIn(teamfile.Member{Name: "a", Command: teamfile.Command{"ls"}, Role: team.RoleReviewer, Restart: team.RestartAlways,
		Mode: team.ModePlan, Type: "t", Model: "m", Layout: "window", Env: map[string]string{"A": "b"}, Worktree: "none", Prompt: "p", Backend: "tmux"})
	want := tool.SpawnIn{Name: "a", Command: []string{"ls"}, Role: "reviewer", Restart: "always", Mode: "plan", AgentType: "t", Model: "m",
		Layout: team.PaneWindow, Env: map[string]string{"A": "b"}, Worktree: "none", Prompt: "p", Backend: "tmux", Count: 1,
		Place: team.Place{Layout: team.PaneWindow, TMUX: "/tmp/x,1,0", TMUXPane: "%4"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := spawnIn(teamfile.Member{Name: "a", Layout: "auto", Count: 3}); got.Layout != team.PaneAuto || got.Count != 3 {
		t.Errorf("auto: %+v", got)
	}
}

func TestWanted(t *testing.T) {
	t.Parallel()
	e := ledger.Event{Who: "w", What: "task.failed"}
	for _, c := range []struct {
		f    ledger.EventFilter
		want bool
	}{
		{ledger.EventFilter{}, true},
		{ledger.EventFilter{What: "task."}, true},
		{ledger.EventFilter{What: "task.failed", Who: "w"}, true},
		{ledger.EventFilter{What: "task"}, false},
		{ledger.EventFilter{What: "task.failed."}, false},
		{ledger.EventFilter{Who: "x"}, false},
	} {
		if got := wanted(e, c.f); got != c.want {
			t.Errorf("%+v: %v", c.f, got)
		}
	}
}

package publish

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestRosterInConfig: config.json has the documented fields for each kind of member:
// the lead has no colour, prompt, backend or plan mode, and an empty pane.
func TestRosterInConfig(t *testing.T) {
	t.Parallel()
	row := ledger.TeamRow{Key: "demo", Name: "Demo", Description: "d", CreatedAt: 5, LeadSession: "agent:default:team:demo", Hidden: []string{"%3", "%9"}}
	cfg := &team.Config{}
	fillConfig(cfg, row, []ledger.Member{
		{
			AgentID: "team-lead@demo", Name: team.LeadName, Color: "blue", JoinedAt: 5, Activity: team.ActivityUnknown,
			Spec: team.MemberSpec{AgentType: "team-lead", Model: "m", Cwd: "/r"},
		},
		{
			AgentID: "ann@demo", Name: "ann", Color: "blue", JoinedAt: 6, PaneID: "%3", Worktree: "/w/ann",
			Observed: team.Running, Activity: team.Working,
			Spec: team.MemberSpec{Agent: "claude", Model: "m", Backend: "tmux", Prompt: "do it", Mode: team.ModePlan, Cwd: "/r"},
		},
		{
			AgentID: "bob@demo", Name: "bob", Color: "green", JoinedAt: 7, PaneID: team.PaneInProcess, Observed: team.Running, Activity: team.Idle,
			Spec: team.MemberSpec{Agent: "worker", AgentType: "tester", Backend: "in-process", Cwd: "/r"},
		},
		{
			AgentID: "eve@demo", Name: "eve", JoinedAt: 8, Observed: team.Pending, Activity: team.ActivityUnknown,
			Spec: team.MemberSpec{Agent: team.AgentExternal, Cwd: "/r"},
		},
	})
	data, err := cfg.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "name": "Demo",
  "description": "d",
  "createdAt": 5,
  "leadAgentId": "team-lead@demo",
  "leadSessionId": "agent:default:team:demo",
  "members": [
    {
      "agentId": "team-lead@demo",
      "name": "team-lead",
      "agentType": "team-lead",
      "model": "m",
      "prompt": "",
      "joinedAt": 5,
      "tmuxPaneId": "",
      "cwd": "/r",
      "subscriptions": []
    },
    {
      "agentId": "ann@demo",
      "name": "ann",
      "agentType": "claude",
      "model": "m",
      "prompt": "do it",
      "color": "blue",
      "planModeRequired": true,
      "joinedAt": 6,
      "tmuxPaneId": "%3",
      "cwd": "/w/ann",
      "subscriptions": [],
      "backendType": "tmux",
      "worktreePath": "/w/ann",
      "mode": "plan",
      "isActive": true
    },
    {
      "agentId": "bob@demo",
      "name": "bob",
      "agentType": "tester",
      "model": "",
      "prompt": "",
      "color": "green",
      "planModeRequired": false,
      "joinedAt": 7,
      "tmuxPaneId": "in-process",
      "cwd": "/r",
      "subscriptions": [],
      "backendType": "in-process",
      "isActive": false
    },
    {
      "agentId": "eve@demo",
      "name": "eve",
      "agentType": "external",
      "model": "",
      "prompt": "",
      "planModeRequired": false,
      "joinedAt": 8,
      "tmuxPaneId": "",
      "cwd": "/r",
      "subscriptions": [],
      "isActive": true
    }
  ],
  "hiddenPaneIds": [
    "%3"
  ]
}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
}

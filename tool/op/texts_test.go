package op

import (
	"encoding/json"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestTextsOfTheDocuments: programs that were written for the documents compare these.
func TestTextsOfTheDocuments(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	lead, bob, inside := h.as("lena", team.RoleLeader, ""), h.as("bob", team.RoleExecutor, ""), h.as("inside", team.RoleLeader, "")
	h.team(func(tm *tool.Team) error {
		m, err := tm.Ledger.Member(t.Context(), "inside")
		if err != nil {
			return err
		}
		pane := team.PaneInProcess
		_, err = tm.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, PaneID: &pane})
		return err
	})
	nowhere := h.person()
	nowhere.Env, nowhere.team = &tool.Env{Home: team.Home{Dir: t.TempDir()}}, ""
	for _, c := range []struct {
		s            *Session
		op, in, want string
		code         team.Code // "" where it is a result
	}{
		{h.person(), "TeamCreate", `{"team_name":"other"}`, `Already leading team "demo". Use TeamDelete first.`, team.CodeConflict},
		{nowhere, "TeamDelete", `{}`, "No team name found, nothing to clean up", ""},
		{nowhere, "SendMessage", `{"type":"broadcast","content":"x"}`, "Not in a team context.", team.CodeNotFound},
		{h.person(), "SendMessage", `{"team_name":"ghost","type":"broadcast","content":"x"}`, `Team "ghost" does not exist`, team.CodeNotFound},
		{h.person(), "TeammateSpawn", `{"team_name":"ghost","name":"x"}`, `Team "ghost" does not exist`, team.CodeNotFound},
		{inside, "TeammateSpawn", `{"name":"x"}`, "In-process teammates cannot spawn other teammates.", team.CodeDenied},
		{lead, "TaskCreate", `{"subject":"First","description":""}`, "Task #1 created successfully: First", ""},
		{bob, "TaskClaim", `{"task_id":"1"}`, "Claimed task #1: First", ""},
		{lead, "TaskClaim", `{"task_id":"1"}`, "Task already claimed by another agent", team.CodeConflict},
		{lead, "SendMessage", `{"type":"message","content":"x"}`, "recipient is required for message type", team.CodeInvalid},
		{lead, "SendMessage", `{"type":"message","recipient":"lena","content":"x"}`, "Cannot send a message to yourself", team.CodeInvalid},
		{lead, "SendMessage", `{"type":"message","recipient":"bob@demo","content":"x"}`, "Message sent to bob's inbox", ""},
		{lead, "SendMessage", `{"type":"broadcast","content":"x"}`, "Message broadcast to 3 teammate(s): team-lead, bob, inside", ""},
		{lead, "TaskList", `{}`, "#1 [claimed] First (owner: bob)", ""},
		{bob, "SendMessage", `{"type":"shutdown_response","request_id":"r"}`, "approve is required for shutdown_response type", team.CodeInvalid},
		{bob, "SendMessage", `{"type":"shutdown_response","approve":true}`, "request_id is required for shutdown_response type", team.CodeInvalid},
		{bob, "SendMessage", `{"type":"shutdown_response","request_id":"shutdown-1@bob","approve":false}`, "content is required to reject a shutdown: say why", team.CodeInvalid},
	} {
		out, err := c.s.CallJSON(t.Context(), c.op, json.RawMessage(c.in))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			var text struct{ Message, Text string }
			if err := json.Unmarshal(out, &text); err != nil {
				t.Fatal(err)
			}
			got = text.Message + text.Text
		}
		if got != c.want || err != nil && team.CodeOf(err) != c.code || err == nil && c.code != "" {
			t.Errorf("%s %s: %q (%v), want %q", c.op, c.in, got, err, c.want)
		}
	}
}

package op

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// A list omits completed tasks unless asked for them and has the oldest first; each
// filter works alone and with the others.
func TestTaskListFilters(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	lead, bob, ann := h.as("lena", team.RoleLeader, ""), h.as("bob", team.RoleExecutor, ""), h.as("ann", team.RoleExecutor, "")
	call := func(s *Session, op, in string) json.RawMessage {
		t.Helper()
		out, err := s.CallJSON(t.Context(), op, json.RawMessage(in))
		if err != nil {
			t.Fatalf("%s %s: %v", op, in, err)
		}
		return out
	}
	for range 5 {
		call(lead, "TaskCreate", `{"subject":"x","description":""}`)
	}
	for _, c := range []struct {
		s  *Session
		id string
	}{{bob, "1"}, {bob, "2"}, {ann, "3"}, {ann, "4"}} {
		call(c.s, "TaskClaim", `{"task_id":"`+c.id+`"}`)
	}
	call(bob, "TaskComplete", `{"task_id":"1"}`)
	call(ann, "TaskComplete", `{"task_id":"3"}`)
	h.team(func(tm *tool.Team) error {
		m, err := tm.Ledger.Member(t.Context(), "ann")
		if err != nil {
			return err
		}
		return tm.Ledger.Fail(t.Context(), ledger.TaskRef{ID: "4", Owner: m.SessionKey, Attempt: 1}, ledger.Result{ExitCode: 1})
	})
	for in, want := range map[string][]string{
		`{}`:                                                        {"2", "4", "5"},
		`{"includeCompleted":true}`:                                 {"1", "2", "3", "4", "5"},
		`{"status":"pending"}`:                                      {"5"},
		`{"status":"completed"}`:                                    {"1", "3"},
		`{"owner":"bob"}`:                                           {"2"},
		`{"owner":"bob@demo"}`:                                      {"2"},
		`{"owner":"bob","status":"completed"}`:                      {"1"},
		`{"owner":"ann","status":"claimed"}`:                        {},
		`{"owner":"ann","status":"failed"}`:                         {"4"},
		`{"owner":"bob","includeCompleted":true}`:                   {"1", "2"},
		`{"status":"claimed","includeCompleted":true}`:              {"2"},
		`{"owner":"ann","status":"failed","includeCompleted":true}`: {"4"},
		`{"includeCompleted":true,"newest":true,"limit":2}`:         {"5", "4"},
		`{"owner":"bob","includeCompleted":true,"newest":true}`:     {"2", "1"},
	} {
		var out TaskListOut
		if err := json.Unmarshal(call(lead, "TaskList", in), &out); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, task := range out.Tasks {
			got = append(got, task.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" || out.Counts.Total() != 5 {
			t.Errorf("%s, of %d (-want +got):\n%s", in, out.Counts.Total(), diff)
		}
	}
}

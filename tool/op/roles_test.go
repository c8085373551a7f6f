package op

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// home is a team without processes, and sessions of its members.
type home struct {
	*testing.T
	env *tool.Env
}

func newHome(t *testing.T) home {
	t.Helper()
	h := home{t, &tool.Env{Home: team.Home{Dir: t.TempDir()}}}
	if _, err := h.env.TeamCreate(t.Context(), tool.Person(), tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	return h
}

// team runs f on the open team.
func (h home) team(f func(t *tool.Team) error) {
	h.Helper()
	t, err := h.env.Open(h.Context(), "demo")
	if err == nil {
		err = f(t)
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		h.Fatal(err)
	}
}

// as puts a member in a role and a mode on the roster and returns its session.
func (h home) as(name string, role team.Role, mode team.Mode) *Session {
	h.Helper()
	var c tool.Caller
	h.team(func(t *tool.Team) error {
		m, _, err := t.Ledger.AddMember(h.Context(), ledger.Member{
			Name: name, Role: role, Observed: team.Running, Desired: team.WantStopped, Spec: team.MemberSpec{Agent: "worker", Backend: "pty", Mode: mode},
		}, true)
		c = tool.Caller{Name: m.Name, Session: m.SessionKey, Role: role, Mode: mode}
		return err
	})
	return NewSession(h.env, "demo", func(context.Context, *tool.Team) (tool.Caller, error) { return c, nil }, func() tool.Caller { return c })
}

// person is a session of the person.
func (h home) person() *Session {
	return NewSession(h.env, "demo", func(context.Context, *tool.Team) (tool.Caller, error) { return tool.Person(), nil }, tool.Person)
}

// sample is an input that an operation takes.
func (o Op) sample(t *testing.T) json.RawMessage {
	t.Helper()
	s, err := o.InputSchema()
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{}
	for _, name := range s.Required {
		in[name] = sampleOf(s.Properties[name])
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sampleOf(s *jsonschema.Schema) any {
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	if v, ok := map[string]any{"boolean": true, "integer": 1, "object": map[string]any{}, "array": []any{}}[s.Type]; ok {
		return v
	}
	return "1"
}

var fiveRoles = []team.Role{team.RoleLeader, team.RoleExecutor, team.RoleReviewer, team.RoleObserver, team.RoleOperator}

// TestRefusalsByRole: every operation, called by every role: + goes past the gate
// (and may fail for want of what it is about), - is denied. The columns are leader,
// executor, reviewer, observer, operator; then what is left in plan mode and in
// delegate mode of what a leader has.
func TestRefusalsByRole(t *testing.T) {
	t.Parallel()
	const everybody = "+++++"
	want := map[string]string{
		"TeamCreate": "+---- ++", "TeamDelete": "+---+ -+", "TeamShutdown": "+---+ --", "TeamStatus": everybody + " +-", "TeamUp": "+---- --",
		"TeammateSpawn": "+---+ --", "TeammateStop": "+---+ --", "TeammateRestart": "+---+ --", "TeammateStart": "+---+ --", "TeammatePause": "+---+ --", "TeammateResume": "+---+ --", "TeammateInterrupt": "+---+ --", "TeammateRename": "+---+ --", "TeammateMode": "+---+ --",
		"TeammateOutput": everybody + " +-",
		"TaskCreate":     "+++-+ -+", "TaskGet": everybody + " ++", "TaskList": everybody + " ++", "TaskUpdate": "+---+ -+",
		"TaskClaim": "++--+ --", "TaskComplete": "++--+ --", "TaskFail": "++--+ --", "TaskRelease": "++--+ --", "TaskRetry": "+++-+ --",
		"SendMessage": "+++-+ ++", "InboxRead": everybody + " +-", "ThreadShow": everybody + " +-",
		"PlanSubmit": everybody + " +-", "ApprovalList": everybody + " +-", "ApprovalAnswer": "+---+ --",
		"ScratchpadGet": everybody + " +-", "ScratchpadMerge": "+++-+ --", "WorktreeStatus": everybody + " +-", "WorktreeDiff": everybody + " +-", "WorktreeMerge": "+---+ --",
		"EdgeList": everybody + " +-", "EdgeAdd": "+---+ --", "EdgeRemove": "+---+ --",
		"ReviewShow": everybody + " +-", "ReviewAdd": "+-+-+ --", "ReviewSend": "+-+-+ --", "ReviewAnswer": everybody + " +-",
		"RunShow": everybody + " +-", "Wait": everybody + " +-", "Events": everybody + " +-",
		"agents_list": everybody + " +-", "agent_create": "++--+ --", "agent_update": "++--+ --", "models_list": everybody + " +-",
		"session_set_model": "+++-+ --", "session_set_agent": "+++-+ --",
		"session_spawn": "+++-+ --", "session_send": "+++-+ --", "session_stop": "+++-+ --", "session_wake": "+++-+ --", "subagent_spawn_oneshot": "+++-+ --",
		"session_list": everybody + " +-", "session_history": everybody + " +-",
	}
	h := newHome(t)
	sessions := make([]*Session, 0, len(fiveRoles)+2)
	for _, role := range fiveRoles {
		sessions = append(sessions, h.as("a-"+string(role), role, team.ModeDefault))
	}
	sessions = append(sessions, h.as("planner", team.RoleLeader, team.ModePlan), h.as("delegator", team.RoleLeader, team.ModeDelegate))
	asker := h.as("asker", team.RoleExecutor, team.ModeDefault)
	h.team(func(tm *tool.Team) error {
		for range 3 {
			if _, err := tm.TaskAdd(t.Context(), tool.Person(), tool.TaskAddIn{Tasks: []ledger.NewTask{{Subject: "s"}}}); err != nil {
				return err
			}
		}
		return nil
	})
	if _, err := asker.Call(t.Context(), "PlanSubmit", json.RawMessage(`{"plan_content":"p"}`)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "team.yaml")
	if err := os.WriteFile(file, []byte("team: demo\ntasks: [{subject: s}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{ // what makes the difference between denied and not there
		"WorktreeMerge": `{"ready":true}`,
		"SendMessage":   `{"type":"message","recipient":"asker","content":"x"}`, "TaskUpdate": `{"task_id":"3","priority":1}`,
		"Wait": `{"member":"asker","state":"running"}`, "TeammateMode": `{"name":"asker","mode":"acceptEdits"}`,
		"ApprovalAnswer": `{"request_id":"1","approve":true}`,
		"EdgeAdd":        `{"from":"asker","type":"reviews","to":"planner"}`, "EdgeRemove": `{"from":"asker","type":"handoff","to":"planner"}`,
		"agent_create": `{"draft":{"name":"x y","policy":{"tools":{"allow":[]},"skills":{"allow":[]}}}}`, "agent_update": `{"agent_id":"none","patch":{}}`,
		"session_set_model": `{"model_ref":"a/b"}`, "TeamUp": fmt.Sprintf(`{"file":%q,"dry_run":true}`, file), "session_wake": `{"after":"10m","text":"x"}`,
	}
	for _, o := range All() {
		if o.Name == "TeamDelete" { // last: it works
			continue
		}
		if want[o.Name] == "" {
			t.Errorf("%s: nobody says who may call it", o.Name)
		}
		in := json.RawMessage(inputs[o.Name])
		if len(in) == 0 {
			in = o.sample(t)
		}
		got := ""
		for i, s := range sessions {
			if i == len(fiveRoles) {
				got += " "
			}
			got += pass(t, s, o, in)
		}
		if got != want[o.Name] {
			t.Errorf("%s: %s, want %s", o.Name, got, want[o.Name])
		}
	}
	o, err := Find("TeamDelete")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sessions {
		if mark := want["TeamDelete"][i+i/len(fiveRoles)]; mark == '-' && pass(t, s, o, nil) != "-" {
			t.Errorf("TeamDelete by session %d", i)
		}
	}
	if pass(t, sessions[0], o, nil) != "+" {
		t.Error("a leader may not delete the team")
	}
}

// pass is + when a call got past the gate, - when it was denied for who asks.
func pass(t *testing.T, s *Session, o Op, in json.RawMessage) string {
	t.Helper()
	_, err := s.Call(t.Context(), o.Name, in)
	switch {
	case !team.IsCode(err, team.CodeDenied):
		if team.IsCode(err, team.CodeInvalid) && team.ReasonOf(err) == team.ReasonInput {
			t.Errorf("%s: the test's input: %v", o.Name, err)
		}
		return "+"
	case team.ReasonOf(err) != "role" && team.ReasonOf(err) != "mode" && o.Name != "TeamCreate":
		t.Errorf("%s: denied for %q: %v", o.Name, team.ReasonOf(err), err)
	}
	return "-"
}

// TestOffered: what is offered to a role or mode is what it may call; what it may
// not call is offered to nobody.
func TestOffered(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	names := func(s *Session) []string {
		list, err := s.Offered(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, o := range list {
			out = append(out, o.Name)
		}
		return out
	}
	for _, c := range []struct {
		role   team.Role
		mode   team.Mode
		has    []string
		hasNot []string
	}{
		{team.RoleLeader, "", []string{"TeamCreate", "TeamDelete", "TeammateSpawn", "TeammateMode", "TaskUpdate"}, nil},
		{team.RoleExecutor, "", []string{"TaskClaim", "SendMessage", "PlanSubmit"}, []string{"TeammateSpawn", "TeamShutdown", "ApprovalAnswer", "TeammateMode"}},
		{team.RoleReviewer, "", []string{"ApprovalAnswer", "TaskCreate"}, []string{"TaskClaim", "TaskComplete"}},
		{team.RoleObserver, "", []string{"TaskList", "Events", "InboxRead"}, []string{"SendMessage", "TaskCreate", "ScratchpadMerge"}},
		{team.RoleOperator, "", []string{"TeammateSpawn", "ApprovalAnswer"}, []string{"TeamCreate"}},
		{team.RoleExecutor, team.ModePlan, []string{"PlanSubmit", "SendMessage", "TaskList", "InboxRead"}, []string{"TaskClaim", "TaskCreate", "ScratchpadMerge"}},
		{team.RoleLeader, team.ModeDelegate, []string{"TaskCreate", "SendMessage", "TeamDelete"}, []string{"TaskClaim", "TeamStatus", "ScratchpadMerge"}},
	} {
		got := names(h.as("m-"+string(c.role)+string(c.mode), c.role, c.mode))
		for _, n := range c.has {
			if !slices.Contains(got, n) {
				t.Errorf("%s %s is not offered %s", c.role, c.mode, n)
			}
		}
		for _, n := range c.hasNot {
			if slices.Contains(got, n) {
				t.Errorf("%s %s is offered %s", c.role, c.mode, n)
			}
		}
	}
	if got := names(h.person()); len(got) != len(All()) {
		t.Errorf("a person is offered %v", got)
	}
	h.team(func(tm *tool.Team) error {
		if err := tm.Set(t.Context(), tool.Person(), tool.SetSpawnDepth, "1"); err != nil {
			return err
		}
		return tm.Set(t.Context(), tool.Person(), tool.SetAnswerer+"plan", "leader")
	})
	if got := names(h.as("deep", team.RoleExecutor, "")); !slices.Contains(got, "TeammateSpawn") {
		t.Error("the setting does not offer spawning to an executor")
	}
}

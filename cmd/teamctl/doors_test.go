package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/mcp"
	"github.com/teamctl/teamctl/tool/op"
)

// door is a way to call operations.
type door func(name string, in map[string]any) (json.RawMessage, *mcp.Failure)

// spare removes all doors but the given one and a random other one.
func spare(doors map[string]func(*world) door, keep string) {
	var others []string
	for name := range doors {
		if name != keep {
			others = append(others, name)
		}
	}
	one := others[rand.IntN(len(others))]
	maps.DeleteFunc(doors, func(name string, _ func(*world) door) bool { return name != keep && name != one })
}

// world is a home without a team, for runs of the real program.
type world struct {
	*testing.T
	dir, exe string
	env      []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	exe, err := exec.LookPath("teamctl")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(strays.Short(), "tc-d") // a socket path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: dir, exe: exe}
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(k, "TEAMCTL_") && !strings.HasPrefix(k, "TMUX") && k != "HOME" && k != "TMPDIR" {
			w.env = append(w.env, kv)
		}
	}
	w.env = append(w.env, "HOME="+dir+"/home", "TMPDIR="+dir+"/tmp", team.EnvHome+"="+dir+"/t", team.EnvRuntime+"="+dir+"/r", "NO_COLOR=1")
	for _, d := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { nothingLeft(t, dir) })
	return w
}

func (w *world) tick() {
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	<-t.C
}

func (w *world) home() team.Home { return team.Home{Dir: w.dir + "/t"} }

// run runs the program and returns its JSON output.
func (w *world) run(args ...string) (json.RawMessage, *mcp.Failure) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.exe, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, w.env, 5*time.Second
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	var e struct {
		Error struct{ Message, Code, Reason, Hint string }
	}
	if jerr := json.Unmarshal(out, &e); jerr != nil {
		w.Fatalf("%v: %v: no JSON: %s", args, err, out)
	}
	return nil, &mcp.Failure{Error: e.Error.Message, Code: team.Code(e.Error.Code), Reason: e.Error.Reason, Hint: e.Error.Hint}
}

// viaMCP returns a door for an MCP client, that of the SDK, which talks to the program over
// stdio.
func (w *world) viaMCP() door {
	w.Helper()
	cmd := exec.Command(w.exe, "mcp")
	cmd.Dir, cmd.Env, cmd.Stderr = w.dir, w.env, os.Stderr
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "v0"}, nil).
		Connect(w.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cs.Close() })
	return func(name string, in map[string]any) (json.RawMessage, *mcp.Failure) {
		w.Helper()
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Minute)
		defer cancel()
		res, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: in})
		if err != nil {
			w.Fatalf("%s: %v", name, err)
		}
		text := []byte(res.Content[0].(*sdk.TextContent).Text)
		if !res.IsError {
			w.fits(name, res.StructuredContent)
			return text, nil
		}
		var f mcp.Failure
		if err := json.Unmarshal(text, &f); err != nil {
			w.Fatal(err)
		}
		return nil, &f
	}
}

// fits checks a result against the schema that its tool declares.
func (w *world) fits(name string, result any) {
	w.Helper()
	o, err := op.Find(name)
	if err != nil {
		w.Fatal(err)
	}
	schema, err := o.OutputSchema()
	if err != nil {
		w.Fatal(err)
	}
	fits, err := schema.Resolve(nil)
	if err == nil {
		err = fits.Validate(result)
	}
	if err != nil {
		w.Errorf("the result of %s does not fit its schema: %v", name, err)
	}
}

// viaGo returns a door for a Go program. Its supervisors run the real program, as for any program
// that links the library, and find their sockets by the environment.
func (w *world) viaGo() door {
	for _, kv := range w.env {
		if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(v, w.dir) {
			w.Setenv(k, v)
		}
	}
	env := &tool.Env{Home: w.home(), Dial: control.Dialer([]string{w.exe}), Writer: control.Writer}
	s := op.NewSession(env, "", func(context.Context, *tool.Team) (tool.Caller, error) { return tool.Person(), nil }, tool.Person)
	s.AsLead = true
	return func(name string, in map[string]any) (json.RawMessage, *mcp.Failure) {
		w.Helper()
		b, err := json.Marshal(in)
		if err != nil {
			w.Fatal(err)
		}
		out, err := s.CallJSON(w.Context(), name, b)
		if err != nil {
			return nil, &mcp.Failure{Error: err.Error(), Code: team.CodeOf(err), Reason: team.ReasonOf(err), Hint: team.HintOf(err)}
		}
		return out, nil
	}
}

// viaCall returns a door for teamctl call.
func (w *world) viaCall() door {
	return func(name string, in map[string]any) (json.RawMessage, *mcp.Failure) {
		w.Helper()
		b, err := json.Marshal(in)
		if err != nil {
			w.Fatal(err)
		}
		return w.run("call", name, string(b))
	}
}

// viaVerbs returns a door for a shell, which uses a command for each operation of the scenario.
func (w *world) viaVerbs() door {
	return func(name string, in map[string]any) (json.RawMessage, *mcp.Failure) {
		w.Helper()
		text := func(key string) string { s, _ := in[key].(string); return s }
		var args []string
		flag := func(name, key string) {
			if v := in[key]; v != nil {
				args = append(args, "--"+name+"="+fmt.Sprint(v))
			}
		}
		switch name {
		case "TeamCreate":
			args = []string{"create", text("team_name")}
			flag("description", "description")
		case "TeammateSpawn":
			args = []string{"spawn", text("name")}
			flag("agent", "agent")
			flag("backend", "backend")
			flag("worktree", "worktree")
			flag("restart", "restart")
			flag("permission-mode", "mode")
			if c, ok := in["command"].([]string); ok {
				args = append(append(args, "--json", "--"), c...)
				return w.run(args...)
			}
		case "TaskCreate":
			args = []string{"task", "add", text("subject")}
			flag("description", "description")
			flag("active-form", "activeForm")
			if m, ok := in["metadata"].(map[string]any); ok {
				args = append(args, "--run="+m["run"].(string))
			}
			if d, ok := in["dependsOn"].([]string); ok {
				args = append(args, "--depends-on="+strings.Join(d, ","))
			}
		case "Wait":
			args = []string{"wait", "--timeout=5m"}
		case "SendMessage":
			args = []string{"send", text("recipient"), text("content")}
			if text("type") == "broadcast" {
				args = []string{"broadcast", text("content")}
			}
		case "InboxRead":
			args = []string{"inbox", "--consume"}
		case "ApprovalList":
			args = []string{"approvals"}
		case "ApprovalAnswer":
			args = []string{"approvals", "approve", text("request_id")}
			flag("mode", "permission_mode")
		case "ScratchpadMerge":
			b, err := json.Marshal(in["patch"])
			if err != nil {
				w.Fatal(err)
			}
			args = []string{"scratchpad", "merge", string(b)}
		case "EdgeList":
			args = []string{"edge", "ls"}
		case "EdgeAdd":
			args = []string{"edge", "add", text("from"), text("type"), text("to")}
		case "EdgeRemove":
			args = []string{"edge", "rm", text("from"), text("type"), text("to")}
		case "TeamUp":
			args = []string{"up", "-f", text("file")}
			flag("dry-run", "dry_run")
			flag("remove", "remove")
		case "TeamShutdown":
			args = []string{"shutdown"}
			flag("reason", "reason")
		case "TeamDelete":
			args = []string{"delete"}
		default:
			w.Fatalf("the scenario calls %s, which has no command here", name)
		}
		return w.run(append(args, "--json")...)
	}
}

// must makes a call that has to succeed, and decodes its result into out.
func (w *world) must(d door, name string, in map[string]any, out any) {
	w.Helper()
	res, f := d(name, in)
	if f != nil {
		w.Fatalf("%s: %+v", name, *f)
	}
	if out != nil {
		if err := json.Unmarshal(res, out); err != nil {
			w.Fatalf("%s: %v", name, err)
		}
	}
}

// planner is an agent that submits a plan, waits for the answer, notifies the lead, and exits
// when it is asked to shut down.
const planner = `teamctl() { "%s" "$@"; }
teamctl ask plan 'one: look. two: leap.' --wait >/dev/null && teamctl send team-lead 'on my way' >/dev/null
until teamctl inbox --unread | grep -q shutdown_request; do sleep 0.3; done`

// scenario runs a team from its creation to its deletion, and returns its ledger as it is before
// the deletion.
func (w *world) scenario(d door) story {
	w.Helper()
	w.must(d, "TeamCreate", map[string]any{"team_name": "demo", "description": "the same through every door"}, nil)
	for _, name := range []string{"builder", "tester"} {
		w.must(d, "TeammateSpawn", map[string]any{"name": name, "agent": "worker", "backend": "pty", "worktree": "none"}, nil)
	}
	w.must(d, "TeammateSpawn", map[string]any{"name": "planner", "backend": "pty", "worktree": "none", "mode": "plan", "restart": "never",
		"command": []string{"sh", "-c", fmt.Sprintf(planner, w.exe)}}, nil)
	for i, subject := range []string{"first", "second", "third"} {
		in := map[string]any{"subject": subject, "description": "runs true", "activeForm": "Running", "metadata": map[string]any{"run": "true"}}
		if i > 0 {
			in["dependsOn"] = []string{fmt.Sprint(i)}
		}
		w.must(d, "TaskCreate", in, nil)
	}
	w.must(d, "Wait", map[string]any{"timeout_seconds": 300}, nil)
	w.must(d, "SendMessage", map[string]any{"type": "message", "recipient": "builder", "content": "well done"}, nil)
	w.must(d, "SendMessage", map[string]any{"type": "broadcast", "content": "nearly there"}, nil)
	var waiting struct{ Approvals []ledger.Approval }
	for len(waiting.Approvals) == 0 {
		w.must(d, "ApprovalList", nil, &waiting)
		w.tick()
	}
	w.must(d, "ApprovalAnswer", map[string]any{"request_id": fmt.Sprint(waiting.Approvals[0].ID), "approve": true, "permission_mode": "acceptEdits"}, nil)
	heard := ""
	for !strings.Contains(heard, "on my way") {
		var in tool.InboxOut
		w.must(d, "InboxRead", nil, &in)
		for _, e := range in.Entries {
			heard += e.Text + "\n"
		}
		w.tick()
	}
	w.must(d, "ScratchpadMerge", map[string]any{"patch": map[string]any{"api": "v2"}}, nil)
	var edge struct{ Status string }
	for _, want := range []string{"added", "already_set"} {
		if w.must(d, "EdgeAdd", map[string]any{"from": "tester", "type": "reviews", "to": "builder"}, &edge); edge.Status != want {
			w.Errorf("edge %s, want %s", edge.Status, want)
		}
	}
	w.must(d, "EdgeAdd", map[string]any{"from": "tester", "type": "handoff", "to": "builder"}, nil)
	w.must(d, "EdgeRemove", map[string]any{"from": "tester", "type": "handoff", "to": "builder"}, nil)
	var graph struct{ Edges []team.Edge }
	if w.must(d, "EdgeList", nil, &graph); len(graph.Edges) != 1 || graph.Edges[0] != (team.Edge{From: "tester", Type: team.EdgeReviews, To: "builder"}) {
		w.Errorf("edges %v", graph.Edges)
	}
	w.must(d, "TeamShutdown", map[string]any{"reason": "all done"}, nil)
	s := w.read()
	w.must(d, "TeamDelete", nil, nil)
	if list, err := (&tool.Env{Home: w.home()}).Teams(w.Context()); err != nil || len(list) != 0 {
		w.Errorf("after the end there are teams: %v %v", list, err)
	}
	return s
}

// story is a ledger without the values that differ between runs: times, ids, and which worker did
// what.
type story struct {
	Team      ledger.TeamRow
	Members   []string
	Tasks     []string
	Messages  []string
	Approvals []string
	Pad       string
	Events    []string
}

func (w *world) read() story {
	w.Helper()
	ctx := w.Context()
	t, err := (&tool.Env{Home: w.home()}).Open(ctx, "demo")
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = t.Close() }()
	var s story
	check := func(err error) {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
	}
	s.Team, err = t.Ledger.Team(ctx)
	check(err)
	s.Team.CreatedAt = 0
	ms, err := t.Ledger.Members(ctx, true)
	check(err)
	for _, m := range ms {
		s.Members = append(s.Members, fmt.Sprintln(m.AgentID, m.Role, m.Spec.Agent, m.Spec.Mode, m.Spec.Backend, m.Spec.WorktreeMode, m.Desired, m.RemovedAt != 0, m.Color))
	}
	tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{})
	check(err)
	for _, t := range tasks {
		s.Tasks = append(s.Tasks, fmt.Sprintln(t.ID, t.Subject, t.Description, t.ActiveForm, t.Status, t.DependsOn, string(t.Metadata), t.Attempt))
	}
	all, err := t.Ledger.Messages(ctx, ledger.MessageFilter{})
	check(err)
	for _, m := range all {
		switch m.Kind {
		case team.KindMessage, team.KindBroadcast:
			s.Messages = append(s.Messages, fmt.Sprintln(m.Kind, m.From, m.To, m.Text, m.Summary))
		case team.KindPlanApprovalRequest, team.KindPlanApprovalResponse, team.KindShutdownRequest:
			s.Messages = append(s.Messages, fmt.Sprintln(m.Kind, m.From, m.To))
		default: // notices of workers, which depend on how often they are idle
		}
	}
	as, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{})
	check(err)
	for _, a := range as {
		s.Approvals = append(s.Approvals, fmt.Sprintln(a.ID, a.Kind, a.State, a.Name, a.Subject, a.AnsweredBy))
	}
	pad, err := t.Ledger.Scratchpad(ctx)
	check(err)
	s.Pad = fmt.Sprint(string(pad.Doc), pad.Version)
	events, err := t.Ledger.Events(ctx, 0, 0, ledger.EventFilter{})
	check(err)
	for _, e := range events {
		switch e.What {
		case "team.edge": // the supervisor removes the edges of members that leave
			s.Events = append(s.Events, fmt.Sprintln(e.What, e.ID, e.After))
		case "task.created", "task.claimed", "task.completed", "approval.asked", "approval.answered", "member.mode", "member.desired":
			who := e.Who
			if who != team.LeadName {
				who = "a member"
			}
			s.Events = append(s.Events, fmt.Sprintln(e.What, who, e.ID, e.Before, e.After))
		}
	}
	slices.Sort(s.Members)
	slices.Sort(s.Messages)
	slices.Sort(s.Events)
	return s
}

// TestSameScenario checks that the scenario leaves the same ledger for an MCP client that runs no
// shell command, for commands, for teamctl call, and for a Go program.
func TestSameScenario(t *testing.T) {
	doors := []struct {
		name string
		open func(*world) door
	}{{"mcp", (*world).viaMCP}, {"verbs", (*world).viaVerbs}, {"call", (*world).viaCall}, {"go", (*world).viaGo}}
	if testing.Short() { // the first one and a random other one
		doors[1] = doors[1+rand.IntN(len(doors)-1)]
		doors = doors[:2]
	}
	var first story
	for i, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			w := newWorld(t)
			got := w.scenario(d.open(w))
			if i == 0 {
				first = got
				if len(got.Members) != 4 || len(got.Tasks) != 3 || len(got.Approvals) != 1 || len(got.Messages) < 7 {
					t.Errorf("the scenario is incomplete: %+v", got)
				}
				return
			}
			if diff := cmp.Diff(first, got); diff != "" {
				t.Errorf("through %s the ledger differs (-mcp +%s):\n%s", d.name, d.name, diff)
			}
		})
	}
}

// TestSameRefusals checks that all doors refuse a call with the same error.
func TestSameRefusals(t *testing.T) {
	w := newWorld(t)
	doors := []struct {
		name string
		door door
	}{{"go", w.viaGo()}, {"mcp", w.viaMCP()}, {"call", w.viaCall()}}
	w.must(doors[2].door, "TeamCreate", map[string]any{"team_name": "demo"}, nil)
	w.must(doors[2].door, "TaskCreate", map[string]any{"subject": "s", "description": ""}, nil)
	type refusal struct {
		op   string
		in   map[string]any
		verb []string // the same as a command, if there is one
	}
	list := []refusal{
		{"TeamCreate", map[string]any{"team_name": "a@b"}, []string{"create", "a@b"}},
		{"TeamCreate", map[string]any{"team_name": "demo"}, []string{"create", "demo"}},
		{"TaskGet", map[string]any{"task_id": "9"}, []string{"task", "show", "9"}},
		{"TaskCreate", map[string]any{"subject": " ", "description": ""}, []string{"task", "add", " "}},
		{"TaskCreate", map[string]any{"subject": "x", "description": "", "dependsOn": []string{"9"}}, []string{"task", "add", "x", "--depends-on", "9"}},
		{"TaskUpdate", map[string]any{"task_id": "1", "addBlockedBy": []string{"1"}}, []string{"task", "edit", "1", "--depends-on", "+1"}},
		{"TaskUpdate", map[string]any{"task_id": "1", "addDependsOn": []string{"1"}}, []string{"task", "edit", "1", "--depends-on", "+1"}},
		{"TaskUpdate", map[string]any{"task_id": "1", "owner": "ghost"}, []string{"task", "assign", "1", "ghost"}},
		{"TaskComplete", map[string]any{"task_id": "1"}, []string{"task", "complete", "1"}},
		{"SendMessage", map[string]any{"type": "message", "recipient": "ghost", "content": "x"}, []string{"send", "ghost", "x"}},
		{"SendMessage", map[string]any{"type": "message", "content": "x"}, nil},
		{"SendMessage", map[string]any{"type": "message", "recipient": "team-lead", "content": " "}, []string{"send", "team-lead", " "}},
		{"SendMessage", map[string]any{"type": "shutdown_request", "content": "x"}, nil},
		{"SendMessage", map[string]any{"type": "shutdown_response", "request_id": "r", "approve": true}, nil},
		{"ApprovalAnswer", map[string]any{"request_id": "9", "approve": true}, []string{"approvals", "approve", "9"}},
		{"ScratchpadMerge", map[string]any{"patch": map[string]any{"a": 1}, "expected_version": 7}, []string{"scratchpad", "merge", `{"a":1}`, "--expect", "7"}},
		{"TeammateStop", map[string]any{"name": "team-lead"}, nil},
		{"TeammateRename", map[string]any{"name": "team-lead", "new_name": "x"}, []string{"rename", "team-lead", "x"}},
		{"TeammateMode", map[string]any{"name": "team-lead", "mode": "bypassPermissions"}, []string{"mode", "team-lead", "bypassPermissions"}},
		{"TeammateSpawn", map[string]any{"name": "x", "mode": "bypassPermissions"}, []string{"spawn", "x", "--permission-mode", "bypassPermissions"}},
		{"TeammateSpawn", map[string]any{"name": "x", "agent": "command"}, []string{"spawn", "x", "--agent", "command"}},
		{"WorktreeDiff", map[string]any{"names": []string{"x"}}, []string{"worktree", "diff", "x"}},
		{"EdgeAdd", map[string]any{"from": "team-lead", "type": "reviews", "to": "team-lead"}, []string{"edge", "add", "team-lead", "reviews", "team-lead"}},
		{"EdgeRemove", map[string]any{"from": "team-lead", "type": "reviews", "to": "ghost"}, []string{"edge", "rm", "team-lead", "reviews", "ghost"}},
		{"RunShow", map[string]any{"run": 9}, []string{"run", "show", "9"}},
		{"ThreadShow", map[string]any{"message_id": "ffff"}, []string{"thread", "ffff"}},
		{"TaskList", map[string]any{"team_name": "other"}, []string{"task", "ls", "--team", "other"}},
		{"agent_update", map[string]any{"agent_id": "nobody", "patch": map[string]any{}}, nil},
		{"session_set_model", map[string]any{"model_ref": "script/demo", "session_key": "ghost"}, []string{"session", "model", "ghost", "script/demo"}},
	}
	for _, o := range op.All() { // wrong and missing parameters of every operation
		list = append(list, refusal{op: o.Name, in: map[string]any{"no_such_parameter": 1}})
		s, err := o.InputSchema()
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Required) > 0 {
			list = append(list, refusal{op: o.Name, in: map[string]any{}})
		}
	}
	for _, r := range list {
		_, want := doors[0].door(r.op, r.in)
		if want == nil {
			t.Errorf("%s %v is not refused", r.op, r.in)
			continue
		}
		for _, d := range doors[1:] {
			if testing.Short() && r.verb == nil && d.name == "call" && rand.IntN(4) > 0 {
				continue // one mistake in four: all go through the same code, in a process for each
			}
			if _, got := d.door(r.op, r.in); got == nil || *got != *want {
				t.Errorf("%s %v through %s: %+v, want %+v", r.op, r.in, d.name, got, want)
			}
		}
		if r.verb == nil {
			continue
		}
		if _, got := w.run(append(r.verb, "--json")...); got == nil || got.Error != want.Error || got.Code != want.Code || got.Reason != want.Reason {
			t.Errorf("%v: %+v, want %+v", r.verb, got, want)
		}
	}
	w.must(doors[2].door, "TeamDelete", nil, nil)
}

// TestVerbs checks that the command that an operation names exists.
func TestVerbs(t *testing.T) {
	t.Parallel()
	for _, o := range op.All() {
		if o.Verb == "" {
			continue
		}
		words := strings.Fields(o.Verb)
		a := &app{out: newOutput(os.Stdout, os.Stderr, false)}
		cmd, rest, err := a.root(words).Find(words)
		if err != nil || len(rest) > 0 || strings.TrimPrefix(cmd.CommandPath(), "teamctl ") != o.Verb {
			t.Errorf("%s: teamctl %s: %v %v", o.Name, o.Verb, rest, err)
		}
	}
}

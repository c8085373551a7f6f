package main

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/mcp"
	"github.com/teamctl/teamctl/tool/op"
)

// repeated is a call that is made twice. The first one changes something, and the second one has
// nothing left to change.
type repeated struct {
	op     string
	in     map[string]any
	verb   string // the same as a command
	want   string // outcome of the second call
	before []call // prerequisites
}

type call struct {
	op string
	in map[string]any
}

// inHand returns a call that makes the caller the owner of a task in progress.
func inHand(id string) []call {
	return []call{{"TaskUpdate", map[string]any{"task_id": id, "status": "in_progress"}}}
}

// repeats lists the operations that can be repeated, in an order in which each of them changes
// something.
var repeats = []repeated{
	{"TaskComplete", map[string]any{"task_id": "1"}, "task complete 1", "already_completed", inHand("1")},
	{"TaskFail", map[string]any{"task_id": "2", "error": "no compiler"}, "task fail 2 --error x", "already_failed", inHand("2")},
	{"TaskRetry", map[string]any{"task_id": "2"}, "task retry 2", "already_pending", nil},
	{"TaskRelease", map[string]any{"task_id": "3"}, "task release 3", "already_pending", inHand("3")},
	{"TaskUpdate", map[string]any{"task_id": "4", "status": "deleted"}, "task rm 4", "already_deleted", nil},
	{"ApprovalAnswer", map[string]any{"request_id": "1", "approve": true}, "approvals approve 1", "already_approved", nil},
	{"ApprovalAnswer", map[string]any{"request_id": "2", "approve": false, "feedback": "smaller"}, "approvals reject 2 --feedback smaller", "already_rejected", nil},
	{"EdgeAdd", map[string]any{"from": "tester", "type": "reviews", "to": "builder"}, "edge add tester reviews builder", "already_set", nil},
	{"EdgeRemove", map[string]any{"from": "tester", "type": "reviews", "to": "builder"}, "edge rm tester reviews builder", "already_removed", nil},
	{"TeammateMode", map[string]any{"name": "builder", "mode": "acceptEdits"}, "mode builder acceptEdits", "already_set", nil},
	{"TeammatePause", map[string]any{"name": "builder"}, "pause builder", "already_paused", nil},
	{"TeammateResume", map[string]any{"name": "builder"}, "resume builder", "already_running", nil},
	{"TeammateStop", map[string]any{"name": "builder"}, "stop builder", "already_stopped", nil},
	{"TeammateRename", map[string]any{"name": "builder", "new_name": "baker"}, "rename builder baker", "already_renamed", nil},
	{"TeammateStart", map[string]any{"name": "baker"}, "start baker", "already_running", nil},
	{"TeamShutdown", nil, "shutdown baker tester", "already_left", nil},
	{"TeamDelete", nil, "delete demo", "already_deleted", nil},
}

// others lists answers that differ in content from a previous answer, and are refused.
var others = []repeated{
	{"ApprovalAnswer", map[string]any{"request_id": "1", "approve": true, "permission_mode": "acceptEdits"}, "approvals approve 1 --mode acceptEdits", "with another mode", nil},
	{"ApprovalAnswer", map[string]any{"request_id": "2", "approve": false, "feedback": "larger"}, "approvals reject 2 --feedback larger", "with another feedback", nil},
}

// notRepeated lists the other operations that can be repeated, with the reason why no outcome
// reports it.
var notRepeated = map[string]string{
	"TeamUp":            "TestUpAtEveryDoor",
	"ReviewAnswer":      "its answer is the review as it is",
	"agent_update":      "its answer is the spec as it is",
	"session_stop":      "its answer is the session as it is",
	"session_set_model": "its answer is the session as it is",
	"session_set_agent": "its answer is the session as it is",
	"TeamShutdown":      "a team without members has none to report; a member that has left is of TeammateStop",
}

var alreadyOutcome = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(?:outcome|status)":\s*"(already_[a-z_]+)"`)
})

// TestRepeatedAtEveryDoor checks that a repeated completion, stop, deletion or answer is reported
// as such by MCP, teamctl call, a Go program, and the command, which exits with status 0 and
// reports it as JSON and as text.
func TestRepeatedAtEveryDoor(t *testing.T) {
	of := map[string]bool{}
	for _, r := range repeats {
		of[r.op] = true
	}
	for _, o := range op.All() {
		if o.Idempotent && !o.ReadOnly && !of[o.Name] && notRepeated[o.Name] == "" {
			t.Errorf("%s can be repeated, but is in neither repeats nor notRepeated", o.Name)
		}
	}
	doors := map[string]func(*world) door{
		"mcp": (*world).viaMCP, "call": (*world).viaCall, "verb": (*world).viaCall, "go": (*world).viaGo,
	}
	if testing.Short() {
		spare(doors, "verb")
	}
	for name, open := range doors {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := open(w)
			w.must(d, "TeamCreate", map[string]any{"team_name": "demo"}, nil)
			for _, member := range []string{"builder", "tester"} {
				w.must(d, "TeammateSpawn", map[string]any{"name": member, "backend": "pty", "worktree": "none", "command": []string{"sleep", "1000"}}, nil)
			}
			for i := range 4 {
				w.must(d, "TaskCreate", map[string]any{"subject": "task " + strconv.Itoa(i+1), "description": ""}, nil)
			}
			w.plans("builder", "tester")
			for _, r := range repeats {
				if (r.op == "TeammatePause" || r.op == "TeammateResume") && !cgroup.Probe().Freeze {
					continue // this user cannot pause members
				}
				for _, b := range r.before {
					w.must(d, b.op, b.in, nil)
				}
				if name == "verb" {
					w.again(r)
					continue
				}
				if r.op == "EdgeAdd" { // both plans are answered
					w.refusesOthers(d)
				}
				if r.op == "TeamShutdown" { // stops the members by name, like the command
					w.must(d, r.op, nil, nil)
					r = repeated{op: "TeammateStop", in: map[string]any{"name": "baker"}, want: "already_stopped"}
				}
				res, f := w.named(name, d, r)
				if left := r.op == "TeammateStop" && r.in["name"] == "baker"; f != "" || !left && alreadyOutcome().Match(res) {
					t.Errorf("%s: %s %s", r.op, res, f)
				}
				res, f = w.named(name, d, r)
				if m := alreadyOutcome().FindSubmatch(res); f != "" || m == nil || string(m[1]) != r.want {
					t.Errorf("%s, repeated: %s %s, want %s", r.op, res, f, r.want)
				}
			}
		})
	}
}

// refusesOthers checks that each of others is refused as a conflict.
func (w *world) refusesOthers(d door) {
	w.Helper()
	for _, r := range others {
		for door, f := range map[string]*mcp.Failure{"door": second(d(r.op, r.in)), "verb": second(w.run(append(strings.Fields(r.verb), "--json")...))} {
			if f == nil || f.Code != team.CodeConflict || f.Reason != team.ReasonAlreadyResolved || !strings.HasSuffix(f.Error, r.want) {
				w.Errorf("%s by its %s: %+v, want a conflict %q", r.verb, door, f, r.want)
			}
		}
	}
}

func second[A, B any](_ A, b B) B { return b }

// named makes a call through a door. It passes the team of a TeamDelete to teamctl call, which
// cannot infer it the second time.
func (w *world) named(name string, d door, r repeated) (res []byte, failure string) {
	w.Helper()
	if name == "call" && r.op == "TeamDelete" {
		d = func(string, map[string]any) (json.RawMessage, *mcp.Failure) {
			return w.run("call", "TeamDelete", "{}", "--team", "demo")
		}
	}
	out, f := d(r.op, r.in)
	if f != nil {
		return nil, f.Error
	}
	return out, ""
}

// again runs a command three times. The third run reports the outcome as text.
func (w *world) again(r repeated) {
	w.Helper()
	args := strings.Fields(r.verb)
	if res, f := w.run(append(args, "--json")...); f != nil || alreadyOutcome().Match(res) {
		w.Errorf("%s: %s %+v", r.verb, res, f)
	}
	res, f := w.run(append(args, "--json")...)
	if m := alreadyOutcome().FindSubmatch(res); f != nil || m == nil || string(m[1]) != r.want {
		w.Errorf("%s, repeated: %s %+v, want %s", r.verb, res, f, r.want)
	}
	cmd := exec.CommandContext(w.Context(), w.exe, args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "already") {
		w.Errorf("%s, repeated: %s: %v", r.verb, out, err)
	}
}

// plans makes each member request the approval of a plan.
func (w *world) plans(members ...string) {
	w.Helper()
	t, err := (&tool.Env{Home: w.home()}).Open(w.Context(), "demo")
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = t.Close() }()
	for _, name := range members {
		m, err := t.Ledger.Member(w.Context(), name)
		if err == nil {
			_, err = t.AskPlan(w.Context(), tool.Caller{Name: m.Name, Session: m.SessionKey, Role: team.RoleExecutor}, tool.PlanIn{Content: "look, then leap"})
		}
		if err != nil {
			w.Fatal(err)
		}
	}
}

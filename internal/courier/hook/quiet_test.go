package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

var varies = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)

// records returns what hooks have recorded and told.
func (r *rig) records() map[string]string {
	r.t.Helper()
	out := map[string]string{}
	for _, name := range []string{"conversation.json", "seen.json", "usage.json", "given.json"} {
		data, err := os.ReadFile(filepath.Join(string(r.team.Layout.Bundle("ann")), name))
		if err != nil && !os.IsNotExist(err) {
			r.t.Fatal(err)
		}
		out[name] = varies.ReplaceAllString(string(data), "*")
	}
	told, err := json.Marshal(r.told)
	if err != nil {
		r.t.Fatal(err)
	}
	out["told"] = varies.ReplaceAllString(string(told), "*")
	return out
}

func (r *rig) quiet(event, input string) bool {
	return Quiet(r.t.Context(), r.in(event, input, nil), r.team, time.Now())
}

// TestQuietRecordsWhatRunDoes: for every event of every program, and nothing waits.
func TestQuietRecordsWhatRunDoes(t *testing.T) {
	t.Parallel()
	usage := filepath.Join(t.TempDir(), "t.jsonl")
	lines := `{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":3,"output_tokens":2}}}` + "\n" +
		`{"id":"a","type":"gemini","tokens":{"input":3,"output":2}}` + "\n"
	if err := os.WriteFile(usage, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	in := `{"session_id":"c1","turn_id":"t1","transcript_path":"` + usage + `","tool_name":"Bash","tool_input":{"command":"true"},"source":"startup",` +
		`"permission_mode":"plan","error":"server_error","last_assistant_message":"no","notification_type":"permission_prompt","message":"may it?"}`
	for _, cli := range []string{adapter.Claude, adapter.Codex, adapter.Gemini} {
		t.Run(cli, func(t *testing.T) {
			t.Parallel()
			one, two := newRig(t), newRig(t)
			one.cli, two.cli = cli, cli
			for _, event := range adapter.HookEvents(cli) {
				if !adapter.AnswersAtOnce(cli, event) {
					if two.quiet(event, in) {
						t.Errorf("%s waits, and is quiet", event)
					}
					continue
				}
				one.call(event, in)
				if !two.quiet(event, in) {
					t.Errorf("%s is not quiet", event)
				}
				if diff := cmp.Diff(one.records(), two.records()); diff != "" {
					t.Errorf("after %s, Run and Quiet:\n%s", event, diff)
				}
			}
		})
	}
}

// TestNotQuiet: whenever anything waits, the supervisor changes nothing.
func TestNotQuiet(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), "long.jsonl")
	if err := os.WriteFile(long, []byte(strings.Repeat("{}\n", maxQuiet/2)), 0o600); err != nil {
		t.Fatal(err)
	}
	asks := `{"session_id":"c1","tool_name":"Bash","tool_input":{"command":"true"}}`
	for _, c := range []struct {
		name, event, input string
		before             func(*rig)
	}{
		{name: "mail", before: func(r *rig) { r.post("words") }},
		{name: "mail that is on its way", before: func(r *rig) { r.post("words"); r.call("PostToolUse", inC1) }},
		{name: "a request that was answered at the screen", event: "PostToolUse", input: asks, before: func(r *rig) { r.asks("ls", "true") }},
		{name: "any request, at the end of the turn", event: "Stop", input: asks, before: func(r *rig) { r.asks("ls") }},
		{name: "another hook", before: func(r *rig) {
			lock, ok, err := filelock.TryLock(filepath.Join(string(r.team.Layout.Bundle("ann")), "hook.lock"))
			if err != nil || !ok {
				r.t.Fatal(ok, err)
			}
			r.t.Cleanup(func() { _ = lock.Unlock() })
		}},
		{name: "a long transcript", event: "PostToolUse", input: `{"session_id":"c1","transcript_path":"` + long + `"}`},
		{name: "a transcript that is not to be seen", event: "PostToolUse", input: `{"session_id":"c1","transcript_path":"/nowhere/t.jsonl"}`},
		{name: "a relative transcript", event: "PostToolUse", input: `{"session_id":"c1","transcript_path":"quiet_test.go"}`},
		{name: "an unknown event", event: "Pause"},
		{name: "no generation", before: func(r *rig) { r.vars[team.EnvGen] = "" }},
		{name: "no member", before: func(r *rig) { r.vars[team.EnvAgentID] = "" }},
		{name: "a member of another team", before: func(r *rig) { r.vars[team.EnvAgentID] = "ann@other" }},
		{name: "a wrong token", before: func(r *rig) { r.vars[team.EnvToken] = "none" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if c.before != nil {
				c.before(r)
			}
			if c.event == "" {
				c.event = "PreToolUse"
			}
			if c.input == "" {
				c.input = inC1
			}
			was := r.records()
			if r.quiet(c.event, c.input) {
				t.Error("it is quiet")
			}
			if diff := cmp.Diff(was, r.records()); diff != "" {
				t.Errorf("it changes\n%s", diff)
			}
			pending, err := r.team.Ledger.Approvals(t.Context(), ledger.ApprovalFilter{State: ledger.ApprovalPending})
			if err != nil {
				t.Fatal(err)
			}
			if asked := strings.HasPrefix(c.input, `{"session_id":"c1","tool_name"`); asked != (len(pending) > 0) {
				t.Errorf("%d requests are pending", len(pending))
			}
		})
	}
}

// TestQuietBesideARequest: a request of a tool that has not run is not a reason for another process.
func TestQuietBesideARequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.asks("ls")
	if !r.quiet("PostToolUse", `{"session_id":"c1","tool_name":"Bash","tool_input":{"command":"true"}}`) {
		t.Error("it is not quiet")
	}
}

// asks queues requests for commands, as the hook of a permission request does.
func (r *rig) asks(commands ...string) {
	r.t.Helper()
	who, err := r.team.Identify(r.t.Context(), "ann@demo", r.vars[team.EnvToken])
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range commands {
		in, err := json.Marshal(map[string]string{"command": c})
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := r.team.AskPermission(r.t.Context(), who, tool.PermissionIn{ToolName: "Bash", Input: in, RequestID: idHook + team.NewUUID()}); err != nil {
			r.t.Fatal(err)
		}
	}
}

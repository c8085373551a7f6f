package adapter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// What each CLI reads from its hooks: mail at every event, and decisions.
func TestHookRepliesGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	text := "a \"quoted\" <b> &\nline"
	for _, cli := range []string{Claude, Codex, Gemini} {
		for _, version := range []Version{{}, claudeTested} {
			for _, event := range HookEvents(cli) {
				r, _ := GiveMail(cli, event, version, text)
				fmt.Fprintf(&b, "%s %s %s: exit %d\n", cli, version, event, r.Exit)
				if r.Stdout != "" {
					if !json.Valid([]byte(r.Stdout)) {
						t.Errorf("%s %s answers %q", cli, event, r.Stdout)
					}
					fmt.Fprintf(&b, "  out %s", r.Stdout)
				}
				if r.Stderr != "" {
					fmt.Fprintf(&b, "  err %q\n", r.Stderr)
				}
			}
		}
	}
	for _, d := range []*Decision{nil, {Allow: true}, {Allow: true, Input: json.RawMessage(`{"command":"ls"}`)}, {Message: "not now"}} {
		fmt.Fprintf(&b, "decision: %s\n", strings.TrimSpace(Decide(d).Stdout))
	}
	golden(t, "hook_replies.golden", []byte(b.String()))
}

func TestNothingToGiveIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, cli := range []string{Claude, Codex, Gemini} {
		for _, event := range HookEvents(cli) {
			if r, ok := GiveMail(cli, event, claudeTested, ""); ok || r != (HookReply{}) {
				t.Errorf("%s %s answers %+v without mail: a Stop hook would never end", cli, event, r)
			}
		}
	}
}

// Gemini CLI converts angle brackets to entities before it cuts a tool's output.
func TestEntitiesCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event, text string
		ok          bool
	}{
		{"AfterTool", strings.Repeat("x", 25_000), true},
		{"AfterTool", strings.Repeat("<", 7_000), true},
		{"AfterTool", strings.Repeat("<", 8_000), false},
		{"AfterTool", strings.Repeat("<T>", 5_000), false},
		{"AfterAgent", strings.Repeat("<T>", 5_000), true},
	} {
		fits := Characters(Gemini, c.event, Version{}, c.text) <= MostGiven(Gemini, c.event, Version{})
		if _, ok := GiveMail(Gemini, c.event, Version{}, c.text); ok != c.ok || fits != c.ok {
			t.Errorf("%d characters at %s: given %v, fit %v, want %v", len(c.text), c.event, ok, fits, c.ok)
		}
	}
	if !FitsAtEnd(Gemini, Version{}, strings.Repeat("<T>", 5_000)) {
		t.Error("it fits nowhere")
	}
}

func TestHookSees(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		cli, event, input string
		blocked           bool
		want              team.Activity
		wait              team.WaitFor
	}{
		{Claude, "UserPromptSubmit", `{"session_id":"s"}`, false, team.Working, ""},
		{Claude, "Stop", `{"stop_hook_active":false}`, false, team.Idle, ""},
		{Claude, "Stop", `{}`, true, team.Working, ""},
		{Claude, "StopFailure", `{"error":"rate_limit","last_assistant_message":"API Error: Request rejected (429) · come back later"}`, false, team.Idle, ""},
		{Claude, "StopFailure", `{"error":"rate_limit","last_assistant_message":"You've hit your session limit · resets 3pm (UTC)"}`, false, team.Limited, ""},
		{Claude, "PermissionRequest", `{"tool_name":"Bash"}`, false, team.Waiting, team.WaitPermission},
		{Claude, "PermissionRequest", `{"tool_name":"ExitPlanMode"}`, false, team.Waiting, team.WaitPlan},
		{Claude, "Notification", `{"notification_type":"permission_prompt","message":"m"}`, false, team.Waiting, team.WaitPermission},
		{Claude, "Notification", `{"notification_type":"idle_prompt"}`, false, "", ""},
		{Claude, "SessionStart", `{"source":"compact"}`, false, "", ""},
		{Claude, "SessionEnd", `{}`, false, team.ActivityUnknown, ""},
		{Gemini, "AfterAgent", `not json`, false, team.Idle, ""},
		{Gemini, "Notification", `{"notification_type":"ToolPermission"}`, false, team.Waiting, team.WaitPermission},
		{Codex, "Interrupt", `{"turn_id":"t"}`, false, team.Idle, ""},
	} {
		o := HookSees(c.cli, c.event, ParseHook([]byte(c.input)), c.blocked, now)
		if o.Activity != c.want || o.For != c.wait || o.Tier != team.TierHook {
			t.Errorf("%s %s %s: %s for %q, want %s for %q", c.cli, c.event, c.input, o.Activity, o.For, c.want, c.wait)
		}
	}
}

func TestScreens(t *testing.T) {
	t.Parallel()
	box := func(text string) string {
		return "\n────────────\n❯ " + text + "\n────────────\n  ? for shortcuts\n"
	}
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, agent, screen string
		want                team.Activity
		wait                team.WaitFor
		input               string
	}{
		{"idle", Claude, "● done" + box(""), team.Idle, "", ""},
		{"a suggestion is no input", Claude, "● done" + box(`Try "fix the tests"`), team.Idle, "", ""},
		{"half a line", Claude, "● done" + box("half a li"), team.Idle, "", "half a li"},
		{"two lines", Claude, "● done\n────────────\n❯ one\n  two\n────────────\n", team.Idle, "", "one\ntwo"},
		{"busy", Claude, "✻ Thinking… (3s · esc to interrupt)" + box(""), team.Working, "", ""},
		{"busy in the past", Claude, "esc to interrupt\n" + strings.Repeat("text\n", 30) + "● done" + box(""), team.Idle, "", ""},
		{"trust", Claude, "Accessing workspace:\n /x\n Is this a project you created or one you trust?\n ❯ 1. No, exit\n   2. Yes", team.Waiting, team.WaitTrust, "1. No, exit\n2. Yes"},
		{"permission", Claude, "Bash command\n  rm x\n Do you want to proceed?\n ❯ 1. Yes\n   2. No", team.Waiting, team.WaitPermission, "1. Yes\n2. No"},
		{"nothing known", Claude, "$ ", team.ActivityUnknown, "", ""},
		{"codex idle", Codex, "• done\n\n› \n\n  ? for shortcuts", team.Idle, "", ""},
		{"codex half", Codex, "• done\n\n› half\n\n  ? for shortcuts", team.Idle, "", "half"},
		{"codex trust", Codex, "Do you trust the contents of this directory?\n› 1. Yes", team.Waiting, team.WaitTrust, "1. Yes"},
		{"gemini waits", Gemini, "Allow execution of: 'rm'?\n● 1. Allow once\n  2. No", team.Waiting, team.WaitPermission, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, ok, err := BuiltinRules(c.agent)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			got := r.Look(c.screen, Version{}, now)
			if got.Activity != c.want || got.For != c.wait || got.Input != c.input {
				t.Errorf("%s for %q with input %q by %s %q", got.Activity, got.For, got.Input, got.Rule, got.Lines)
			}
		})
	}
}

func TestEveryRuleFileReads(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{Claude, Codex, Gemini, Opencode} {
		if r, ok, err := BuiltinRules(agent); !ok || err != nil || r.Agent != agent || len(r.List) == 0 {
			t.Errorf("%s: %v %v", agent, ok, err)
		}
	}
	if _, ok, err := BuiltinRules(Worker); ok || err != nil {
		t.Errorf("rules for the worker: %v %v", ok, err)
	}
	for file, want := range map[string]string{
		"rules: [{id: a, state: idle, match: ['(']}]":               "missing closing",
		"rules: [{id: a, state: asleep, match: [a]}]":               `not "asleep"`,
		"rules: [{id: a, state: waiting, match: [a]}]":              "permission, plan",
		"rules: [{id: a, state: idle, match: [a], versions: '~1'}]": "version range",
		"rules:\n  - id: a\n    stat: idle":                         "[3:5]",
		"titles: [{match: a, state: waiting}]":                      "title 1",
	} {
		if _, err := ParseRules("r.yaml", []byte(file)); !team.IsCode(err, team.CodeInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestLastTitle(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "plain": "", "\x1b]0;one\x07text\x1b]2;two\x1b\\": "two", "\x1b]0;one\x07\x1b]0;cut": "one", "\x1b]9;4;1;50\x07": "",
	} {
		if got := LastTitle([]byte(in)); got != want {
			t.Errorf("LastTitle(%q) = %q", in, got)
		}
	}
}

// How each program with hooks reports a failed turn.
func TestFailedTurns(t *testing.T) {
	t.Parallel()
	const user, answer = `{"id":"1","type":"user","content":[{"text":"go"}]}`, `{"id":"2","type":"gemini","content":"done"}`
	const broken = `{"id":"3","type":"error","content":"[API Error: bad thing]"}`
	const after = `{"$set":{"lastUpdated":"now"}}` + "\n" + `{"id":"4","type":"info","content":"This request failed."}`
	for tail, want := range map[string]string{
		"": "",
		user + "\n" + answer + "\n" + after + "\n":                                      "",
		`cut off"}` + "\n" + user + "\n" + answer + "\n" + broken + "\n" + after + "\n": "[API Error: bad thing]",
		user + "\n" + broken + "\n" + user + "\n" + answer + "\n":                       "",
		`{"type":"error","content":{}}`:                                                 "an error that its transcript does not name",
	} {
		if got := FailedTurn([]byte(tail)); got != want {
			t.Errorf("%s\nfailed of %q, want %q", tail, got, want)
		}
	}
	now := time.Now()
	for _, c := range []struct {
		cli, event string
		in         HookIn
		want       string
	}{
		{Claude, "StopFailure", HookIn{Error: "unknown", Last: "API Error: 400 bad"}, "API Error: 400 bad"},
		{Claude, "StopFailure", HookIn{Error: "server_error"}, "API error: server_error"},
		{Claude, "StopFailure", HookIn{Last: "You've hit your session limit · resets 3pm (UTC)"}, ""}, // limited
		{Claude, "Stop", HookIn{Last: "API Error: I quote one"}, ""},
		{Gemini, "AfterAgent", HookIn{Failed: "[API Error: bad]"}, "[API Error: bad]"},
		{Gemini, "AfterAgent", HookIn{Failed: "Usage limit reached for all Pro models."}, ""}, // its screen shows the end of the limit
		{Gemini, "AfterTool", HookIn{Failed: "[API Error: bad]"}, ""},
	} {
		if o := HookSees(c.cli, c.event, c.in, false, now); o.Failed != c.want {
			t.Errorf("%s %s %+v failed of %q, want %q", c.cli, c.event, c.in, o.Failed, c.want)
		}
	}
}

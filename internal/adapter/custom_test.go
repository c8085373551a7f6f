package adapter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

const aider = `description: aider in its own pane
launch: [aider, --model, "{model}", --yes, --message, "{prompt}"]
resume: [aider, --restore, "{conversation}"]
version: [--version]
env:
  AIDER_DIR: "{dir}/.aider"
input: '^> (?P<text>.*)$'
ready: ['^> ']
busy: ['Thinking']
waiting:
  - id: confirm
    for: permission
    match: ['\(Y\)es/\(N\)o']
`

func TestCustomAgent(t *testing.T) {
	t.Parallel()
	c, err := ParseCustom("/x/agents/aider.yaml", []byte(aider))
	if err != nil {
		t.Fatal(err)
	}
	l := Launcher{Exe: "/bin/teamctl", Custom: []Custom{c}}
	in := foreign(t, "aider", "")
	in.Model = ""
	out, err := l.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"aider", "--yes", "--message", in.Prompt}; !slices.Equal(out.Argv, want) {
		t.Errorf("argv %q, want %q", out.Argv, want)
	}
	if !slices.Contains(out.Env, "AIDER_DIR="+in.Dir+"/.aider") {
		t.Errorf("the variable is missing in %v", out.Env)
	}
	in.Resume = "c1"
	if out, err = l.Plan(in); err != nil || !slices.Equal(out.Argv, []string{"aider", "--restore", "c1"}) || !out.Link.Resumed {
		t.Errorf("resume: %q, %v", out.Argv, err)
	}
	for screen, want := range map[string]team.Activity{
		"hello\n> ": team.Idle, "Thinking...\n> ": team.Working, "Run it? (Y)es/(N)o\n> ": team.Waiting, "hello": team.ActivityUnknown,
	} {
		if got := c.Rules().Look(screen, Version{}, time.Now()); got.Activity != want {
			t.Errorf("%q is %s, want %s", screen, got.Activity, want)
		}
	}
}

func TestCustomRefusals(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"launch: [x]\nlanch: 1\ninput: a":             "[2:1]",
		"description: x":                              "launch is missing",
		"launch: [x]":                                 "mail: typing needs input",
		"launch: [x]\nmail: pigeon":                   "typing or pull",
		"launch: [x, '{nope}']\nmail: pull":           "unknown word {nope}",
		"launch: [x]\nmail: pull\nbusy: ['(']":        "missing closing",
		"launch: [x]\nmail: pull\nwaiting: [{id: a}]": "at least one pattern",
		"launch: {":                                   "[",
	} {
		_, err := ParseCustom("agents/mine.yaml", []byte(file))
		if !team.IsCode(err, team.CodeInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "mine.yaml") {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
	for _, name := range []string{"claude.yaml", "Bad Name.yaml"} {
		if _, err := ParseCustom(name, []byte("launch: [x]\nmail: pull")); !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
	"github.com/teamctl/teamctl/tool/teamfile"
)

// atDoors is a field of a member, with its spelling at each door.
type atDoors struct {
	field string
	want  any
	flags []string // after the name
	yaml  string   // value of its key
	call  string   // the same in JSON
	file  string   // why there is no key in the team file
}

var memberFields = []atDoors{
	{field: "Name", want: "w", yaml: "w", call: `"w"`},
	{field: "Count", want: 3, flags: []string{"--count", "3"}, yaml: "3", call: "3"},
	{field: "Exact", want: true, flags: []string{"--exact"}, yaml: "true", call: "true"},
	{field: "Role", want: team.RoleReviewer, flags: []string{"--role", "reviewer"}, yaml: "reviewer", call: `"reviewer"`},
	{field: "Base", want: "v1", flags: []string{"--base", "v1"}, yaml: "v1", call: `"v1"`},
	{field: "Branch", want: "fix", flags: []string{"--branch", "fix"}, yaml: "fix", call: `"fix"`},
	{field: "Agent", want: "claude", flags: []string{"--agent", "claude"}, yaml: "claude", call: `"claude"`},
	{field: "Command", want: []string{"make", "test"}, flags: []string{"--", "make", "test"}, yaml: "[make, test]", call: `["make", "test"]`},
	{field: "Backend", want: "pty", flags: []string{"--backend", "pty"}, yaml: "pty", call: `"pty"`},
	{field: "Layout", want: team.PaneWindow, flags: []string{"--window"}, yaml: "window", call: `"window"`},
	{field: "Prompt", want: "go", flags: []string{"--prompt", "go"}, yaml: "go", call: `"go"`},
	{field: "AgentType", want: "scout", flags: []string{"--type", "scout"}, yaml: "scout", call: `"scout"`},
	{field: "Model", want: "m", flags: []string{"--model", "m"}, yaml: "m", call: `"m"`},
	{field: "Mode", want: team.ModePlan, flags: []string{"--permission-mode", "plan"}, yaml: "plan", call: `"plan"`},
	{field: "Bypass", want: true, flags: []string{"--dangerously-skip-permissions"}, call: "true",
		file: "`teamctl up --dangerously-skip-permissions`: a file cannot consent"},
	{field: "Restart", want: team.RestartAlways, flags: []string{"--restart", "always"}, yaml: "always", call: `"always"`},
	{field: "Env", want: map[string]string{"A": "b"}, flags: []string{"--env", "A=b"}, yaml: "{A: b}", call: `{"A": "b"}`},
	{field: "WorktreeMode", want: "none", flags: []string{"--worktree", "none"}, yaml: "none", call: `"none"`},
	{field: "Fresh", want: true, flags: []string{"--fresh"}, yaml: "true", call: "true"},
	{field: "Asks", want: true, flags: []string{"--asks"}, yaml: "true", call: "true"},
	{field: "Repo", want: "web", flags: []string{"--repo", "web"}, yaml: "web", call: `"web"`},
	{field: "Cwd", want: "sub", flags: []string{"--cwd", "sub"}, yaml: "sub", call: `"sub"`},
	{field: "Limits", want: team.Limits{MemoryBytes: 2 << 30, PIDs: 200, CPUPercent: 150},
		flags: []string{"--memory", "2GiB", "--pids", "200", "--cpu", "150%"},
		yaml:  "{memory: 2GiB, pids: 200, cpu: 150%}", call: `{"memory": "2GiB", "pids": 200, "cpu": "150%"}`},
	{field: "Confine", want: true, flags: []string{"--confine"}, yaml: "true", call: "true"},
	{field: "Writable", want: []string{"/srv/cache"}, flags: []string{"--writable", "/srv/cache"}, yaml: "[/srv/cache]", call: `["/srv/cache"]`},
	{field: "MCP", want: team.ServersTeam, flags: []string{"--mcp", "team"}, yaml: "team", call: `"team"`},
}

// TestMemberDoors checks that each field of a member can be set by flag, in a team file and
// through an operation, with the same result. A field that is missing at one of them fails the
// test.
func TestMemberDoors(t *testing.T) {
	t.Parallel()
	spawn, err := op.Find("TeammateSpawn")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]atDoors{}
	for _, f := range memberFields {
		fields[f.field] = f
	}
	typ := reflect.TypeFor[team.Spawn]()
	names := map[string]map[string]string{}
	for _, door := range []string{"yaml", "call"} {
		names[door] = map[string]string{}
		for _, f := range team.DoorFields(typ, door) {
			names[door][typ.FieldByIndex(f.Index).Name] = f.Name
		}
	}
	for _, sf := range reflect.VisibleFields(typ) {
		if _, noted := reflect.TypeFor[team.Origin]().FieldByName(sf.Name); noted || sf.Anonymous {
			if names["yaml"][sf.Name] != "-" && !sf.Anonymous || names["call"][sf.Name] != "-" && !sf.Anonymous {
				t.Errorf("%s is internal to the operations, but a door has it", sf.Name)
			}
			continue
		}
		f, ok := fields[sf.Name]
		if !ok {
			t.Errorf("%s: no door is known: add it to memberFields", sf.Name)
			continue
		}
		same := func(door string, got tool.SpawnIn, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s by %s: %v", sf.Name, door, err)
			} else if diff := cmp.Diff(f.want, reflect.ValueOf(got).FieldByIndex(sf.Index).Interface()); diff != "" {
				t.Errorf("%s by %s (-want +got):\n%s", sf.Name, door, diff)
			}
		}
		got, err := byFlags(append([]string{"w"}, f.flags...))
		same("flag", got, err)
		if name := names["call"][sf.Name]; true {
			in := `{"name": "w", "` + name + `": ` + f.call + "}"
			if name == "name" {
				in = `{"name": "w"}`
			}
			x, err := spawn.Decode(json.RawMessage(in))
			if err == nil {
				got = x.(op.SpawnIn).Spawn
			}
			same("operation", got, err)
		}
		name := names["yaml"][sf.Name]
		if (name == "-") != (f.file != "") {
			t.Errorf("%s: its key in the team file is %q, and the reason that it has none %q", sf.Name, name, f.file)
		}
		if name == "-" {
			continue
		}
		text := "team: demo\nrepo: .\nrepos: {web: ../web}\nmembers:\n  - name: w\n"
		if name != "name" {
			text += "    " + name + ": " + f.yaml + "\n"
		}
		file, err := teamfile.Parse("t.yaml", []byte(text))
		if err == nil {
			got = file.Members[0].Spawn
		}
		same("team file", got, err)
	}
	if len(fields) != len(memberFields) {
		t.Error("a field is in memberFields twice")
	}
	path := filepath.Join("..", "..", memberDoc)
	if want := memberTable(); *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("%s is stale: go generate ./cmd/teamctl (%v)", memberDoc, err)
	}
}

// byFlags parses the command line of a spawn.
func byFlags(args []string) (in tool.SpawnIn, err error) {
	var f spawnFlags
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, args []string) error {
		in, err = f.asked(cmd, args)
		return err
	}}
	f.add(cmd)
	cmd.SetArgs(args)
	return in, cmd.Execute()
}

// TestMemberNames checks that the alternative names of parameters are accepted with the same
// meaning.
func TestMemberNames(t *testing.T) {
	t.Parallel()
	spawn, err := op.Find("TeammateSpawn")
	if err != nil {
		t.Fatal(err)
	}
	x, err := spawn.Decode(json.RawMessage(`{"name": "w", "agent_id": "claude", "task": "go", "agent_type": "t", "dangerously_skip_permissions": true}`))
	if err != nil {
		t.Fatal(err)
	}
	if in := x.(op.SpawnIn); in.Agent != "claude" || in.Prompt != "go" || in.AgentType != "t" || !in.Bypass {
		t.Errorf("%+v", in)
	}
	for _, in := range []string{
		`{"name": "w", "agent_id": "claude", "agent": "codex"}`,
		`{"name": "w", "spawnedBy": "agent:default:team:demo"}`,
		`{"name": "w", "tmux": "/tmp/x,1,0"}`,
		`{"name": "w", "declared": {}}`,
		`{"name": "w", "approval": 1}`,
		`{"name": "w", "limits": {"memory": "much"}}`,
		`{"name": "w", "limits": {"disk": "1GiB"}}`,
	} {
		if _, err := spawn.Decode(json.RawMessage(in)); !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

const memberDoc = "docs/members.md"

// memberTable returns docs/members.md.
func memberTable() string {
	var b strings.Builder
	b.WriteString(`# The fields of a member

<!-- Generated by go generate ./cmd/teamctl; do not edit. -->

A member can be described at four doors: by the flags of ` + "`teamctl spawn`" + `, by an entry of ` + "`members`" + ` in a team file, by the operation
TeammateSpawn (MCP and ` + "`teamctl call`" + `), and by ` + "`tool.SpawnIn`" + ` in a Go program. Each of them has every field.

| Go | flag | team file | operation | meaning |
|---|---|---|---|---|
`)
	typ := reflect.TypeFor[team.Spawn]()
	for _, f := range memberFields {
		sf, _ := typ.FieldByName(f.field)
		name := func(door string) string {
			for _, d := range team.DoorFields(typ, door) {
				if typ.FieldByIndex(d.Index).Name == f.field {
					return d.Name
				}
			}
			return ""
		}
		var flags []string
		for _, w := range f.flags {
			if strings.HasPrefix(w, "--") && w != "--" {
				flags = append(flags, "`"+w+"`")
			}
		}
		switch f.field {
		case "Name":
			flags = []string{"the argument"}
		case "Command":
			flags = []string{"after `--`"}
		case "Layout":
			flags = []string{"`--split`", "`--window`", "`--session`"}
		}
		file := f.file
		if file == "" {
			file = "`" + name("yaml") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | %s |\n", f.field, strings.Join(flags, ", "), file, name("call"), sf.Tag.Get("jsonschema"))
	}
	b.WriteString(`
The operation also takes the names of the documents that it was made from: ` + "`agent_id`" + ` for the kind of agent and ` + "`task`" + ` for the first message.
Everywhere else ` + "`agent_id`" + ` is an address, ` + "`NAME@TEAM`" + `. Paths in a team file are relative to the file.
`)
	return b.String()
}

package teamfile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const whole = `# a team with everything
team: Demo Team
description: builds it
repo: .
base: main
members:
  - name: builder
    agent: worker
    count: 3
    prompt: |
      Two
      lines
    role: reviewer
    restart: always
    env: {PORT: 8080, DEBUG: true, NAME: "x=y"}
    worktree: own
    model: m
    type: t
    mode: plan
    layout: window
    backend: tmux
  - name: probe
    command: htop --tree
  - {name: other, command: [sleep, 100]}
edges:
  - {from: team-lead, type: delegates, to: builder-2}
  - {from: Other, type: handoff, to: probe}
tasks:
  - id: vet
    subject: vet it
    description: >
      one
      line
    run: go vet ./...
    priority: 5
    metadata: &m {timeout: 5m, deep: {list: [1, 2.5, true, null]}}
  - id: 7
    subject: test it
    dependsOn: [vet]
    verify: "true"
    metadata: *m
  - subject: no id
    dependsOn: [vet, 7]
`

func TestParseWhole(t *testing.T) {
	t.Parallel()
	f, err := Parse("teamctl.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	meta := map[string]any{"timeout": "5m", "deep": map[string]any{"list": []any{uint64(1), 2.5, true, nil}}}
	want := &File{
		Team: "Demo Team", Description: "builds it", Repo: ".", Base: "main",
		Members: []Member{
			{Spawn: team.Spawn{Name: "builder", Count: 3, Role: team.RoleReviewer, MemberSpec: team.MemberSpec{Agent: "worker", Prompt: "Two\nlines\n",
				Restart: team.RestartAlways, Env: map[string]string{"PORT": "8080", "DEBUG": "true", "NAME": "x=y"},
				WorktreeMode: "own", Model: "m", AgentType: "t", Mode: team.ModePlan, Layout: "window", Backend: "tmux"}}},
			{Spawn: team.Spawn{Name: "probe", MemberSpec: team.MemberSpec{Command: []string{"bash", "-c", "htop --tree"}}}},
			{Spawn: team.Spawn{Name: "other", MemberSpec: team.MemberSpec{Command: []string{"sleep", "100"}}}},
		},
		Edges: []Edge{{From: "team-lead", Type: team.EdgeDelegates, To: "builder-2"}, {From: "other", Type: team.EdgeHandoff, To: "probe"}},
		Tasks: []Task{
			{ID: "vet", Subject: "vet it", Description: "one line\n", Run: "go vet ./...", Priority: 5, Metadata: meta},
			{ID: "7", Subject: "test it", DependsOn: []string{"vet"}, Verify: "true", Metadata: meta},
			{Subject: "no id", DependsOn: []string{"vet", "7"}},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNewTasks(t *testing.T) {
	t.Parallel()
	f, err := Parse("x", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewTasks(f.Tasks)
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.NewTask{
		{Ref: "vet", Subject: "vet it", Description: "one line\n", Priority: 5,
			Metadata: json.RawMessage(`{"deep":{"list":[1,2.5,true,null]},"run":"go vet ./...","timeout":"5m"}`)},
		{Ref: "7", Subject: "test it", DependsOn: []string{"vet"}, Verify: "true",
			Metadata: json.RawMessage(`{"deep":{"list":[1,2.5,true,null]},"timeout":"5m"}`)},
		{Subject: "no id", DependsOn: []string{"vet", "7"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A JSON file is read the same way, with tabs, escapes and surrogate pairs.
func TestParseJSON(t *testing.T) {
	t.Parallel()
	f, err := Parse("t.json", []byte("{\n\t\"team\": \"demo\",\r\n\t\"tasks\": [\n\t\t{\"id\": \"a\", \"subject\": \"say \\\"hi\\\" \\ud83d\\ude42 \\/ \\u00fc\", \"run\": \"echo 'a: b' # c\"}\n\t]\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Tasks[0].Subject, `say "hi" 🙂 / ü`; got != want {
		t.Errorf("subject %q, want %q", got, want)
	}
	if got, want := f.Tasks[0].Run, "echo 'a: b' # c"; got != want {
		t.Errorf("run %q, want %q", got, want)
	}
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want []string // substrings of the problems, in order
	}{
		"empty":           {"", []string{"f: is empty"}},
		"only a comment":  {"# nothing\n", []string{"f: is empty"}},
		"a list":          {"- team: x\n", []string{"f:1:1: a team file must be a mapping of keys to values, not a list"}},
		"text":            {"hello\n", []string{"f:1:1: a team file must be a mapping of keys to values, not text"}},
		"broken":          {"team: [\n", []string{"f:1:7: "}},
		"no team":         {"description: x\n", []string{"f:1:1: key team is missing"}},
		"bad team":        {"team: a/b\n", []string{`f:1:7: team name "a/b" contains a path separator`}},
		"null team":       {"team:\n", []string{"f:1:7: team must be text, not nothing"}},
		"two documents":   {"team: a\n---\nteam: b\n", []string{"f:3:1: holds more than one document"}},
		"unknown key":     {"team: x\ntaskz: []\n", []string{`f:2:1: unknown key "taskz" (did you mean tasks?)`}},
		"far key":         {"team: x\nzzz: 1\n", []string{`f:2:1: unknown key "zzz" (known here: team, description,`}},
		"key twice":       {"team: x\nteam: y\n", []string{`f:2:1: key "team" is given twice (first in line 1)`}},
		"merge key":       {"team: x\n<<: {}\n", []string{"f:2:1: merge keys (<<) are not supported"}},
		"tag":             {"team: !!int x\n", []string{"f:1:7: tag !!int is not supported"}},
		"lost alias":      {"team: *x\n", []string{"f:1:7: alias *x has no anchor"}},
		"number for text": {"team: 12\n", []string{"f:1:7: team must be text, not the number 12: put it in quotes"}},
		"members no list": {"team: x\nmembers: {a: 1}\n", []string{"f:2:10: members must be a list, not a mapping"}},
		"member no map":   {"team: x\nmembers: [a]\n", []string{"f:2:11: a member must be a mapping of keys to values, not text"}},
		"member no name":  {"team: x\nmembers:\n  - agent: worker\n", []string{"f:3:5: a member has no name"}},
		"member bad name": {"team: x\nmembers: [{name: ../x}]\n", []string{`f:2:18: agent name "../x" contains a path separator`}},
		"member reserved": {"team: x\nmembers: [{name: team-lead}]\n", []string{`f:2:18: agent name "team-lead" is reserved`}},
		"member twice":    {"team: x\nmembers:\n  - {name: a, count: 2}\n  - {name: a-2}\n", []string{`f:4:12: a member named "a-2" is given twice (first in line 3)`}},
		"count":           {"team: x\nmembers:\n  - {name: a, count: 0}\n  - {name: b, count: two}\n", []string{"f:3:22: count must be between 1 and 100", "f:4:22: count must be a whole number, not text"}},
		"role":            {"team: x\nmembers:\n  - name: a\n    role: boss\n", []string{`f:4:11: unknown role "boss": use one of`}},
		"edge types": {"team: x\nmembers: [{name: A, count: 2}]\nedges:\n  - {from: team-lead, type: delegates, to: a-2}\n  - {from: a, type: likes, to: a-2}\n", []string{
			`f:5:21: unknown type of edge "likes": use one of delegates, reviews, reports_to, shares_context, handoff`}},
		"edge ends": {"team: x\nmembers: [{name: a}]\nedges:\n  - {from: a, type: reviews, to: b}\n  - {from: a, type: reviews, to: A}\n  - {from: a}\n", []string{
			`f:4:34: to names no member of this file: "b"`, `f:5:21: an edge leads from one member to another, not from a to itself`, "f:6:5: an edge needs from, type and to"}},
		"restart":         {"team: x\nmembers:\n  - name: a\n    restart: sometimes\n", []string{`f:4:14: unknown restart policy "sometimes"`}},
		"mode":            {"team: x\nmembers:\n  - name: a\n    mode: yolo\n", []string{`f:4:11: unknown permission mode "yolo"`}},
		"layout":          {"team: x\nmembers:\n  - name: a\n    layout: left\n", []string{`f:4:13: unknown layout "left"`}},
		"command missing": {"team: x\nmembers: [{name: a, agent: command}]\n", []string{"f:2:28: agent command needs a command"}},
		"command empty":   {"team: x\nmembers: [{name: a, command: []}]\n", []string{"f:2:30: command is empty"}},
		"command excess":  {"team: x\nmembers: [{name: a, agent: worker, command: ls}]\n", []string{"f:2:28: agent worker takes no command"}},
		"env list":        {"team: x\nmembers: [{name: a, env: [A=b]}]\n", []string{"f:2:26: env must be a mapping of keys to values, not a list"}},
		"env name":        {"team: x\nmembers: [{name: a, env: {\"A=B\": c}}]\n", []string{`f:2:27: "A=B" cannot name a variable`}},
		"env value":       {"team: x\nmembers: [{name: a, env: {A: [b]}}]\n", []string{"f:2:30: variable A must be text, not a list"}},
		"task key":        {"team: x\ntasks:\n  - subject: a\n    dependOn: [b]\n", []string{`f:4:5: unknown key "dependOn" (did you mean dependsOn?)`}},
		"task no subject": {"team: x\ntasks:\n  - id: a\n", []string{"f:3:5: a task has no subject"}},
		"subject empty":   {"team: x\ntasks: [{subject: ' '}]\n", []string{"f:2:19: subject is empty"}},
		"subject long":    {"team: x\ntasks: [{subject: " + strings.Repeat("ä", 201) + "}]\n", []string{"f:2:19: subject is 201 characters long, at most 200"}},
		"id twice":        {"team: x\ntasks:\n  - {id: a, subject: s}\n  - {id: a, subject: s}\n", []string{`f:4:10: id "a" is given twice (first in line 3)`}},
		"unknown task":    {"team: x\ntasks:\n  - {id: format, subject: s}\n  - {subject: s, dependsOn: [fromat]}\n", []string{`f:4:30: dependsOn names no task: "fromat" (did you mean format?)`}},
		"itself":          {"team: x\ntasks: [{id: a, subject: s, dependsOn: [a]}]\n", []string{`f:2:41: task "a" depends on itself`}},
		"cycle":           {"team: x\ntasks:\n  - {id: z, subject: s, dependsOn: [a]}\n  - {id: a, subject: s, dependsOn: [b]}\n  - {id: b, subject: s, dependsOn: [c]}\n  - {id: c, subject: s, dependsOn: [a]}\n", []string{"f:4:36: the dependencies form a cycle: a -> b -> c -> a"}},
		"run twice":       {"team: x\ntasks: [{subject: s, run: a, metadata: {run: b}}]\n", []string{"f:2:40: run stands in the task and in its metadata"}},
		"metadata":        {"team: x\ntasks: [{subject: s, metadata: [1]}]\n", []string{"f:2:32: metadata must be a mapping of keys to values, not a list"}},
		"priority":        {"team: x\ntasks: [{subject: s, priority: 99999999999}]\n", []string{"f:2:32: priority 99999999999 is out of range"}},
		"several at once": {"team: x\nrepo: 1\ntasks:\n  - id: a\n  - {subject: b, dependsOn: [q]}\n", []string{"f:2:7: repo must be text", "f:4:5: a task has no subject", "f:5:30: dependsOn names no task"}},
		"alias in a ring": {"team: x\ntasks: [{subject: s, metadata: &a {b: *a}}]\n", []string{"nested too deeply"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.in))
			if !team.IsCode(err, team.CodeInvalid) {
				t.Fatalf("error %v, want code invalid", err)
			}
			if team.HintOf(err) == "" {
				t.Error("no hint")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("%d problems, want %d:\n%v", len(lines), len(c.want), err)
			}
			for i, want := range c.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("problem %d: %q, want %q", i, lines[i], want)
				}
			}
		})
	}
}

// A short file may not name itself a billion times.
func TestParseBomb(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("team: x\ntasks:\n- subject: s\n  metadata:\n    a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 12 {
		b.WriteString("    a" + string(rune('b'+i)) + ": &a" + string(rune('b'+i)) + " [")
		prev := "a0"
		if i > 0 {
			prev = "a" + string(rune('a'+i))
		}
		b.WriteString(strings.Repeat("*"+prev+",", 10) + "]\n")
	}
	_, err := Parse("f", []byte(b.String()))
	if err == nil || !strings.Contains(err.Error(), "too large once its aliases are followed") {
		t.Errorf("error %v", err)
	}
}

func TestParseTasks(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"list":    "- subject: a\n  dependsOn: [12]\n- {id: b, subject: b}\n",
		"mapping": "tasks:\n  - subject: a\n    dependsOn: [\"12\"]\n  - {id: b, subject: b}\n",
		"json":    `[{"subject":"a","dependsOn":["12"]},{"id":"b","subject":"b"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseTasks("f", []byte(in))
			if err != nil {
				t.Fatal(err)
			}
			want := []Task{{Subject: "a", DependsOn: []string{"12"}}, {ID: "b", Subject: "b"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for in, want := range map[string]string{
		"[]":                               "f: has no tasks",
		"tasks: []":                        "f: has no tasks",
		"team: x\ntasks: [{subject: a}]":   `f:1:1: unknown key "team"`,
		"- {subject: a, dependsOn: [vet]}": `f:1:28: dependsOn names no task: "vet"`,
	} {
		if _, err := ParseTasks("f", []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
	}
}

func TestReadMissing(t *testing.T) {
	t.Parallel()
	_, err := Read(filepath.Join(t.TempDir(), "none.yaml"))
	if !team.IsCode(err, team.CodeNotFound) || team.HintOf(err) == "" {
		t.Errorf("error %v (hint %q), want not_found with a hint", err, team.HintOf(err))
	}
	if _, err := ReadTasks(t.TempDir()); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("a directory: error %v, want invalid", err)
	}
}

func TestSchemaNamesEveryKey(t *testing.T) {
	t.Parallel()
	raw, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		AdditionalProperties any
		Required             []string
		Properties           map[string]struct {
			Type  any
			Items struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"team"}, s.Required); diff != "" {
		t.Errorf("required: %s", diff)
	}
	for _, key := range []string{"name", "agent", "command", "backend", "count", "prompt", "role", "restart", "env", "worktree", "model", "type", "mode", "layout", "limits"} {
		if s.Properties["members"].Items.Properties[key] == nil {
			t.Errorf("members have no key %s", key)
		}
	}
	for _, key := range []string{"id", "subject", "description", "run", "dependsOn", "verify", "priority", "metadata"} {
		if s.Properties["tasks"].Items.Properties[key] == nil {
			t.Errorf("tasks have no key %s", key)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"team":"x","tasks":[{"subject":"a"}]}`))
	f.Add([]byte("team: &a [*a]\n"))
	if more, err := filepath.Glob("testdata/*.yaml"); err == nil {
		for _, path := range more {
			if data, err := os.ReadFile(path); err == nil {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f", data)
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v and error %v", file, err)
		}
		if err == nil {
			if _, err := NewTasks(file.Tasks); err != nil {
				t.Fatal(err)
			}
		}
	})
}

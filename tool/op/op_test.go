package op

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestTable: every operation has what a door shows of it, and its names are single.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	verbs := map[string]string{}
	for _, o := range All() {
		if seen[o.Name] {
			t.Errorf("%s stands in the table twice", o.Name)
		}
		seen[o.Name] = true
		if o.Verb == "" {
			t.Errorf("%s has no verb", o.Name)
		}
		if other := verbs[o.Verb]; other != "" && o.Verb != "" {
			t.Errorf("%s and %s have the verb %q", o.Name, other, o.Verb)
		}
		verbs[o.Verb] = o.Name
		if o.ReadOnly && (o.Destructive || len(o.Gates) > 0) {
			t.Errorf("%s only reads, and is destructive or gated", o.Name)
		}
		in, err := o.InputSchema()
		if err != nil {
			t.Fatal(err)
		}
		if in.Type != "object" || in.AdditionalProperties == nil {
			t.Errorf("%s: the input is no strict object", o.Name)
		}
		for name, p := range in.Properties {
			if p.Description == "" {
				t.Errorf("%s: parameter %s has no description", o.Name, name)
			}
		}
		out, err := o.OutputSchema()
		if err != nil {
			t.Fatal(err)
		}
		if out.Type != "object" {
			t.Errorf("%s: the output is no object", o.Name)
		}
	}
}

// TestDocs: each description says what it does, when to use it and what it refuses,
// and its example is an input that the operation takes.
func TestDocs(t *testing.T) {
	t.Parallel()
	example := regexp.MustCompile("(?s)```json\n(.*?)\n```")
	files, err := fs.Glob(docs, "doc/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range All() {
		doc := o.Doc()
		for _, part := range []string{"Use it when ", "Example:", "Refuses "} {
			if !strings.Contains(doc, "\n\n"+part) {
				t.Errorf("%s: no part %q", o.Name, part)
			}
		}
		m := example.FindStringSubmatch(doc)
		if m == nil {
			t.Errorf("%s: no example", o.Name)
			continue
		}
		if _, err := o.checkInput(json.RawMessage(m[1])); err != nil {
			t.Errorf("%s: the example: %v", o.Name, err)
		}
		files = slices.DeleteFunc(files, func(f string) bool { return f == "doc/"+o.Name+".md" })
	}
	if len(files) > 0 {
		t.Errorf("descriptions of no operation: %v", files)
	}
}

func TestCheckInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ op, in, want string }{
		{"TaskCreate", `{"subject":"a","description":""}`, ""},
		{"TaskCreate", `{"subject":"a","description":"","dependsOn":null,"metadata":{"k":null}}`, ""},
		{"TaskCreate", `{"subject":"a"}`, "description is required"},
		{"TaskCreate", `{"subject":"a","description":null}`, "description is required"},
		{"TaskCreate", `{"subject":"a","description":"","Owner":"x"}`, `TaskCreate has no parameter "Owner"`},
		{"TaskCreate", `{"subject":"a","description":"","metadata":[1]}`, `metadata: type: `},
		{"TaskCreate", `{"subject":7,"description":""}`, `subject: type: `},
		{"TaskCreate", `{"subject":"a","description":"","dependsOn":[true]}`, `dependsOn: `},
		{"TaskCreate", `{"subject":"a","description":"","dependsOn":[1,"2"]}`, ""},
		{"TaskGet", `{"task_id":7}`, ""},
		{"TaskGet", `{"task_id":7.5}`, `task_id: type: `},
		{"SendMessage", `{"type":"message","content":7}`, `content: type: `},
		{"TaskList", `{"status":"done"}`, `status: enum: `},
		{"SendMessage", `{"type":"shout","content":"x"}`, `type: enum: `},
		{"TeamDelete", `{"team_name":"x"}`, `TeamDelete has no parameter "team_name"`},
		{"TeamDelete", ``, ""},
		{"TeamDelete", `null`, ""},
		{"TeamDelete", `[]`, "the input of TeamDelete is not a JSON object"},
		{"TeamCreate", `{}`, "team_name is required"},
	} {
		o, err := Find(c.op)
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.checkInput(json.RawMessage(c.in))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %s: %v", c.op, c.in, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s %s: %v, want %s", c.op, c.in, err, c.want)
		case c.want != "":
			if team.CodeOf(err) != team.CodeInvalid {
				t.Errorf("%s %s: %s", c.op, c.in, team.CodeOf(err))
			}
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	if _, err := Find("TaskLst"); team.HintOf(err) != "did you mean TaskList?" {
		t.Errorf("%v, hint %q", err, team.HintOf(err))
	}
	_, err := Find("task_list")
	if !team.IsCode(err, team.CodeNotFound) || !strings.Contains(team.HintOf(err), "TaskList") {
		t.Errorf("%v, hint %q", err, team.HintOf(err))
	}
}

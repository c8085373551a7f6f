package teamfile

import (
	"reflect"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestPermissions(t *testing.T) {
	t.Parallel()
	f, err := Parse("f", []byte(`team: x
permissions:
  allow:
    - {tool: edit, path: "src/**"}
    - {tool: shell, command: "go test *", members: [ann, "bob*"]}
  deny:
    - tool: WebFetch
`))
	if err != nil {
		t.Fatal(err)
	}
	want := team.Permissions{
		Deny:  []team.PermissionRule{{Tool: "WebFetch"}},
		Allow: []team.PermissionRule{{Tool: "edit", Path: "src/**"}, {Tool: "shell", Command: "go test *", Members: []string{"ann", "bob*"}}},
	}
	if !reflect.DeepEqual(f.Permissions, want) {
		t.Errorf("%+v, want %+v", f.Permissions, want)
	}
	for rule, want := range map[string]string{
		`{path: x}`:                      "f:3:11: a rule names a tool",
		`{tool: edit, path: "["}`:        "not a valid path pattern",
		`{tool: edit, path: "../x"}`:     "no .. in it",
		`{tool: shell, path: x}`:         "a rule about a shell has a command",
		`{tool: edit, glob: x}`:          "unknown key",
		`{tool: edit, members: ann}`:     "members",
		`Bash(go test)`:                  "a rule",
		`{tool: x, path: a, command: b}`: "not both",
	} {
		_, err := Parse("f", []byte("team: x\npermissions:\n  allow: ["+rule+"]\n"))
		if !team.IsCode(err, team.CodeInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", rule, err, want)
		}
	}
}

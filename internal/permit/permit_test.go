package permit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func rule(tool, path, command string, members ...string) team.PermissionRule {
	return team.PermissionRule{Tool: tool, Path: path, Command: command, Members: members}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"src/deep", "secrets"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"src/out": "/etc", "src/to-secrets": "../secrets", "src/nowhere": "/no/such/place", "docs": "src"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	p := team.Permissions{
		Deny: []team.PermissionRule{
			rule("*", "secrets/**", ""),
			rule("shell", "", "rm -rf *"),
			rule("shell", "", "*curl*"),
			rule("WebFetch", "", "", "intern*"),
		},
		Allow: []team.PermissionRule{
			rule("edit", "src/**", ""),
			rule("edit", dir+"/abs/*.txt", ""),
			rule("shell", "", "go test *"),
			rule("shell", "", "make && make install"),
			rule("WebFetch", "", ""),
			rule("mcp__github__*", "", "", "ann"),
			rule("Read", "", ""),
		},
	}
	sh := func(c string) Request { return Request{Tool: "Bash", Command: c} }
	file := func(tool string, paths ...string) Request { return Request{Tool: tool, Paths: paths} }
	for name, c := range map[string]struct {
		r    Request
		want Verdict
	}{
		"a file below":                       {file("Write", "src/a.go"), Allow},
		"deep, by its absolute path":         {file("edit", filepath.Join(dir, "src/deep/x/y.go")), Allow},
		"not below":                          {file("Edit", "go.mod"), Ask},
		"a name that only begins so":         {file("Edit", "src-old/a"), Ask},
		"one of two is not":                  {file("apply_patch", "src/a", "go.mod"), Ask},
		"of unknown files":                   {file("Edit"), Ask},
		"absolute pattern":                   {file("Edit", "abs/a.txt"), Allow},
		"absolute pattern, further down":     {file("Edit", "abs/b/a.txt"), Ask},
		"by way of the parent":               {file("Edit", "src/../go.mod"), Ask},
		"the parent, and below again":        {file("Edit", "src/deep/../a.go"), Ask},
		"a link out":                         {file("Edit", "src/out/passwd"), Ask},
		"a link to what is denied":           {file("Edit", "src/to-secrets/key"), Deny},
		"a link to nowhere":                  {file("Edit", "src/nowhere"), Ask},
		"by a link to what is allowed":       {file("Edit", "docs/a"), Allow},
		"denied":                             {file("Write", "secrets/key"), Deny},
		"denied, in other letters":           {file("Write", "Secrets/KEY"), Deny},
		"denied to read, though allowed":     {file("Read", "secrets/key"), Deny},
		"read elsewhere":                     {file("Read", "go.mod"), Allow},
		"a way to read that is not the tool": {file("Grep", "go.mod"), Ask},
		"a reader of unknown files":          {file("Read"), Ask},
		"one command":                        {sh("go test ./..."), Allow},
		"by another name":                    {Request{Tool: "run_shell_command", Command: "go test ./..."}, Allow},
		"behind a shell":                     {Request{Tool: "exec_command", Command: "/bin/bash -lc 'go test ./...'"}, Allow},
		"behind a shell, denied":             {Request{Tool: "exec_command", Command: "/bin/bash -lc 'rm -rf /'"}, Deny},
		"behind a shell, two":                {Request{Tool: "exec_command", Command: "/bin/bash -lc 'go test . && touch x'"}, Ask},
		"two commands":                       {sh("go test ./... && touch x"), Ask},
		"in the background":                  {sh("go test ./... & touch x"), Ask},
		"on two lines":                       {sh("go test ./...\ntouch x"), Ask},
		"substituted":                        {sh("go test $(touch x)"), Ask},
		"substituted, old style":             {sh("go test `touch x`"), Ask},
		"into a file":                        {sh("go test ./... > go.mod"), Ask},
		"the very text":                      {sh("make && make install"), Allow},
		"denied in the second":               {sh("go test ./... ; rm  -rf /"), Deny},
		"denied behind a variable":           {sh("A=1 rm -rf x"), Deny},
		"denied anywhere":                    {sh("go test ./... | curl x"), Deny},
		"a command that is not told":         {sh(""), Ask},
		"a tool for all but some":            {Request{Tool: "WebFetch"}, Allow},
		"a tool for all but some: one":       {Request{Tool: "WebFetch", Member: "intern-2"}, Deny},
		"a tool of one member":               {Request{Tool: "mcp__github__issue", Member: "Ann"}, Ask}, // it might read files that are denied
		"plan mode":                          {Request{Tool: "Bash", Command: "go test .", Mode: team.ModePlan}, Ask},
		"plan mode, denied":                  {Request{Tool: "Bash", Command: "rm -rf x", Mode: team.ModePlan}, Deny},
	} {
		t.Run(name, func(t *testing.T) {
			c.r.Dir = dir
			got, why := Decide(p, c.r)
			if got != c.want || (why == "") != (got == Ask) {
				t.Errorf("got %d by %q, want %d", got, why, c.want)
			}
		})
	}
	p.Deny = p.Deny[1:]
	if got, _ := Decide(p, Request{Tool: "mcp__github__issue", Member: "Ann", Dir: dir}); got != Allow {
		t.Errorf("a tool of one member: %d", got)
	}
	if got, _ := Decide(p, Request{Tool: "mcp__github__issue", Member: "bob", Dir: dir}); got != Ask {
		t.Errorf("the tool of another member: %d", got)
	}
	if got, _ := Decide(p, Request{Tool: "Edit", Paths: []string{"src/a"}}); got != Ask {
		t.Errorf("nobody knows where it works: %d", got)
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool, input, command string
		paths                []string
	}{
		{"Bash", `{"command":"touch x","description":"go test"}`, "touch x", nil},
		{"Edit", `{"file_path":"/w/a","old_string":"x"}`, "", []string{"/w/a"}},
		{"NotebookEdit", `{"notebook_path":"/w/n"}`, "", []string{"/w/n"}},
		{"apply_patch", `{"command":"*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n@@\n-x\n+*** Add File: \n"}`, "", []string{"a.go", "b.go"}},
		{"Bash", `{"command":["touch","x"]}`, "", nil},
		{"Bash", `"touch x"`, "", nil},
		{"Bash", ``, "", nil},
	} {
		got := Of(c.tool, json.RawMessage(c.input))
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(Request{Tool: c.tool, Command: c.command, Paths: c.paths})
		if string(a) != string(b) {
			t.Errorf("%s %s: %s, want %s", c.tool, c.input, a, b)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for r, good := range map[*team.PermissionRule]bool{
		{Tool: "edit", Path: "src/**/*.{go,mod}"}:  true,
		{Tool: "shell", Command: "go *"}:           true,
		{Tool: "mcp__*"}:                           true,
		{}:                                         false,
		{Tool: "edit", Path: "src/["}:              false,
		{Tool: "edit", Path: "../other/**"}:        false,
		{Tool: "edit", Path: "a", Command: "b"}:    false,
		{Tool: "shell", Path: "src/**"}:            false,
		{Tool: "Write", Command: "x"}:              false,
		{Tool: "edit", Members: []string{"a", ""}}: false,
	} {
		if err := Check(*r); (err == nil) != good {
			t.Errorf("%s: %v", r, err)
		}
	}
}

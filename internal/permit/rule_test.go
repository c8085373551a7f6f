package permit

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// The rule for a request allows it, and not what is only like it.
func TestRuleFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ask := func(tool, command string, paths ...string) Request {
		return Request{Member: "ann", Dir: dir, Tool: tool, Command: command, Paths: paths}
	}
	for name, c := range map[string]struct {
		r     Request
		want  team.PermissionRule
		other Request // must still be asked
	}{
		"a command":            {ask("Bash", "npm publish --tag next"), rule("shell", "", "npm publish --tag next"), ask("Bash", "npm publish --tag next2")},
		"a shell's command":    {ask("shell", "bash -lc 'make all'"), rule("shell", "", "make all"), ask("shell", "bash -lc 'make'")},
		"several commands":     {ask("Bash", "make && make install"), rule("shell", "", "make && make install"), ask("Bash", "make && make install && rm -rf /")},
		"a star":               {ask("Bash", "rm *.o"), rule("", "", ""), ask("Bash", "rm *.o")},
		"no command":           {ask("Bash", ""), rule("", "", ""), ask("Bash", "make")},
		"a file":               {ask("Write", "", filepath.Join(dir, "src", "a.go")), rule("edit", "src/a.go", ""), ask("Write", "", "src/b.go")},
		"a file elsewhere":     {ask("Read", "", "/etc/hosts"), rule("read", "/etc/hosts", ""), ask("Read", "", "/etc/passwd")},
		"two files":            {ask("apply_patch", "", "a", "b"), rule("", "", ""), ask("apply_patch", "", "a")},
		"a file with a star":   {ask("Write", "", "src/*.go"), rule("", "", ""), ask("Write", "", "src/a.go")},
		"by way of the parent": {ask("Write", "", "src/../../a.go"), rule("", "", ""), ask("Write", "", "a.go")},
		"another tool":         {ask("mcp__github__issue", ""), rule("mcp__github__issue", "", "", "ann"), Request{Member: "bob", Dir: dir, Tool: "mcp__github__issue"}},
		"a tool with a star":   {ask("mcp__*", ""), rule("", "", ""), ask("mcp__github__issue", "")},
	} {
		got, ok := RuleFor(c.r)
		if diff := cmp.Diff(c.want, got); diff != "" || ok != (c.want.Tool != "") {
			t.Errorf("%s: %v (-want +got):\n%s", name, ok, diff)
		}
		if !ok {
			continue
		}
		p := team.Permissions{Allow: []team.PermissionRule{got}}
		if v, _ := Decide(p, c.r); v != Allow {
			t.Errorf("%s: its rule does not allow it", name)
		}
		if v, _ := Decide(p, c.other); v != Ask {
			t.Errorf("%s: its rule answers %+v: %d", name, c.other, v)
		}
	}
}

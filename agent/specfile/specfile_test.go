package specfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/team"
)

// TestSameBytes checks that writing and reading a spec yields the same spec, and writing it again
// the same bytes.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.Custom(func(t *rapid.T) []string {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				return nil
			case 1:
				return []string{}
			}
			return rapid.SliceOfN(rapid.StringMatching(`[a-z_*]{1,8}`), 1, 3).Draw(t, "list")
		})
		s := team.AgentSpec{ID: rapid.StringMatching(`a[a-z0-9_-]{0,9}`).Draw(t, "id"), Name: rapid.StringMatching(`N[A-Za-z "\\#'=]{0,9}x`).Draw(t, "name"), Description: rapid.String().Draw(t, "description")}
		s.Defaults.SystemPrompt = rapid.String().Draw(t, "prompt")
		s.Policy = team.SpecPolicy{Tools: team.Filter{Allow: list.Draw(t, "allow"), Deny: list.Draw(t, "deny")}, Skills: team.Filter{Allow: list.Draw(t, "skills")}}
		s.Context.MemoryFilter = list.Draw(t, "filter")
		if rapid.Bool().Draw(t, "model") {
			s.Defaults.Model = team.SpecModel{Provider: "p", Model: "m/x", Temperature: new(rapid.Float64Range(0, 2).Draw(t, "temperature")), MaxOutputTokens: rapid.IntRange(0, 1<<40).Draw(t, "tokens")}
			s.Context.Memory = new(rapid.Bool().Draw(t, "memory"))
		}
		if s.Validate() != nil {
			t.Skip("not a spec")
		}
		b, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode("f", b)
		if err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		if d := cmp.Diff(s, again); d != "" {
			t.Fatalf("%s\n%s", d, b)
		}
		if c, err := Encode(again); err != nil || string(c) != string(b) {
			t.Fatalf("%v\n%s\n%s", err, b, c)
		}
	})
}

func TestDecodeSaysWhere(t *testing.T) {
	t.Parallel()
	const head = "agent_id = \"x\"\nname = \"X\"\n"
	for text, want := range map[string]string{
		head + "nam = 1\n": "f:3:1: unknown key nam",
		head + "\n# more\n[policy.tools]\n  alow = [\n\"a\"]\n": "f:6:3: unknown key policy.tools.alow",
		head + "[policy.tool]\nallow = []\n":                    "f:3:9: unknown key policy.tool",
		head + "[policy]\ntools = {allow = [], x = 1}":          "f:4:22: unknown key policy.tools.x",
		head + "description = \"\"\"\nnam = 1\n\"\"\"\nnam = 2": "f:6:1: unknown key nam",
		head + "description = [":                                "f:3:",
		head + "description = 7\n":                              "description",
		"agent_id = \"x\"\n":                                    "name: missing",
		"agent_id = \"X y\"\nname = \"X\"\n":                    "agent_id: not a valid id",
	} {
		if _, err := Decode("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%s\n%v, want %s", text, err, want)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := Dir(team.Home{Dir: t.TempDir()})
	if specs, troubles := ReadAll(dir); specs != nil || troubles != nil {
		t.Errorf("%v, %v", specs, troubles)
	}
	good := team.AgentSpec{ID: "b", Name: "B", Policy: team.SpecPolicy{Tools: team.Filter{Allow: []string{}}}}
	file, err := Write(dir, good)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a": "agent_id = \"other\"\nname = \"A\"\n", "c": "what"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, Name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "texts"), 0o700); err != nil {
		t.Fatal(err)
	}
	specs, troubles := ReadAll(dir)
	if d := cmp.Diff([]team.AgentSpec{good}, specs); d != "" || len(troubles) != 2 {
		t.Fatalf("%s, %v", d, troubles)
	}
	if _, err := Write(dir, specs[0]); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("%s\n%s, %v", before, after, err)
	}
	if _, err := Write(dir, team.AgentSpec{ID: "../x", Name: "x"}); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("%v", err)
	}
}

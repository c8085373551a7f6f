package teamctl_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// slowVersions are releases that may not be used: what they do in their init runs
// in every process that is started, and a shim is started for every agent.
var slowVersions = []struct{ module, version, why string }{
	{
		"github.com/mattn/go-runewidth", `v0\.0\.(2[5-9]|[3-9]\d)`,
		"its init fills a table of 2.2 MB, 18 ms in every process; v0.0.24 does not. A later one may be taken when it no longer does (scripts/bench startup)",
	},
}

// TestNothingCompiledAtStart: regular expressions and templates are compiled where they
// are used (sync.OnceValue), not in every process before its main function. The test binary of
// cmd/teamctl is the program that its tests start.
func TestNothingCompiledAtStart(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test && f.dir != "cmd/teamctl" || slices.ContainsFunc(strings.Split(f.dir, "/"), func(name string) bool { return name == "scripts" || name == "bench" || name == "fakemodel" }) {
			continue
		}
		for _, decl := range f.tree.Decls {
			vars, ok := decl.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			for _, spec := range vars.Specs {
				for _, value := range spec.(*ast.ValueSpec).Values {
					call, ok := value.(*ast.CallExpr)
					if !ok {
						continue
					}
					switch name := types.ExprString(call.Fun); name {
					case "regexp.MustCompile", "template.Must":
						t.Errorf("%s: %s runs at the start of every process: compile it where it is used, by sync.OnceValue", f.path, name)
					}
				}
			}
		}
	}
}

// TestNoSlowStart: the start of every command and every shim stays cheap.
func TestNoSlowStart(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slowVersions {
		if v := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(s.module) + ` (` + s.version + `)\b`).FindSubmatch(mod); v != nil {
			t.Errorf("go.mod has %s %s: %s", s.module, v[1], s.why)
		}
	}
}

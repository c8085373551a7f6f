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

// slowLibrary is a library whose init takes long. version is a pattern, "" for every version.
type slowLibrary struct{ module, version, why string }

// slowLibraries may not be used, in the versions of a pattern or in all: what they do in their init
// runs in every process that is started, and a shim is started for every agent.
var slowLibraries = []slowLibrary{
	{
		"github.com/mattn/go-runewidth", `v0\.0\.2[5-9]`,
		"its init fills a table of 2.2 MB, 18 ms in every process; v0.0.24 and v0.0.30 do not",
	},
	{"github.com/gdamore/tcell", ``, "it fills tables of character sets in its init, 0.7 ms in every process"},
	{"github.com/charmbracelet/bubbletea", ``, "its renderer wakes 60 times a second while nothing changes; a release that does not may be taken"},
	{"charm.land/bubbletea", ``, "as github.com/charmbracelet/bubbletea, of which it is a later version"},
	{"github.com/charmbracelet/bubbles", ``, "its text fields look for clipboard programs in PATH in their init"},
	{"charm.land/bubbles", ``, "as github.com/charmbracelet/bubbles"},
	{"github.com/charmbracelet/glamour", ``, "24 ms of init: internal/tui sets headings, lists and code apart by itself"},
	{"charm.land/glamour", ``, "as github.com/charmbracelet/glamour"},
	{"github.com/alecthomas/chroma", ``, "14 ms of init: people can pipe changes through a program of their own"},
}

// startOften are the packages of programs that are started for every agent and for every call of a
// tool, with what they must not link, however indirectly.
var startOften = map[string][]string{
	"cmd/teamctl-shim": {"regexp", "html/template", "internal/tui", "internal/view/page"},
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
	for _, s := range slowLibraries {
		if v := s.in(string(mod)); v != "" {
			t.Errorf("go.mod has %s: %s", v, s.why)
		}
	}
	imports := map[string][]string{}
	for _, f := range goFiles(t) {
		if !f.test {
			imports[f.dir] = append(imports[f.dir], f.imports...)
		}
	}
	for dir, never := range startOften {
		for p := range linked(imports, dir) {
			if within(p, never) {
				t.Errorf("%s links %s, which costs each of its many starts", dir, p)
			}
		}
	}
}

// TestSlowStartIsNoticed checks that the names above find what they are for.
func TestSlowStartIsNoticed(t *testing.T) {
	for line, want := range map[string]bool{
		"\tgithub.com/mattn/go-runewidth v0.0.24 // indirect": false, "\tgithub.com/mattn/go-runewidth v0.0.27": true, "\tgithub.com/mattn/go-runewidth v0.0.30": false,
		"\tgithub.com/charmbracelet/bubbletea/v2 v2.0.0": true, "\tcharm.land/bubbles/v2 v2.0.0": true, "\tgithub.com/alecthomas/chroma/v2 v2.14.0 // indirect": true,
		"\tgithub.com/charmbracelet/x/ansi v0.11.8": false, "\tgithub.com/charmbracelet/bubblesort v0.1.0": false,
	} {
		if got := slices.ContainsFunc(slowLibraries, func(s slowLibrary) bool { return s.in("require (\n"+line+"\n)\n") != "" }); got != want {
			t.Errorf("%q: slow %v, want %v", line, got, want)
		}
	}
	imports := map[string][]string{"a": {module + "/b", "fmt"}, "b": {"html/template", module + "/a"}, "c": {"os"}}
	if got := linked(imports, "a"); !got["html/template"] || !got["fmt"] || !got["b"] || got["os"] {
		t.Errorf("a links %v", got)
	}
}

// in returns the version of the library that a go.mod has, if it is one of those, "" otherwise.
func (s slowLibrary) in(mod string) string {
	version := s.version
	if version == "" {
		version = `v\S+`
	}
	found := regexp.MustCompile(`(?m)^\s*(` + regexp.QuoteMeta(s.module) + `(?:/v\d+)? ` + version + `)\b`).FindStringSubmatch(mod)
	if found == nil {
		return ""
	}
	return found[1]
}

// linked returns the packages that a package imports, directly or not: those of this module by their
// directory, the imports of which are known.
func linked(imports map[string][]string, dir string) map[string]bool {
	out := map[string]bool{}
	for todo := []string{dir}; len(todo) > 0; todo = todo[1:] {
		for _, imp := range imports[todo[0]] {
			p := strings.TrimPrefix(imp, module+"/")
			if !out[p] {
				out[p] = true
				todo = append(todo, p)
			}
		}
	}
	return out
}

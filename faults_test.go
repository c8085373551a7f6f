package teamctl_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/named"
)

// TestFaultsAreTested: what can go wrong with processes, tmux, terminals and the
// supervisor has each a test by its number, and docs/faults.md names every such test, so
// that scripts/test checks that it ran and passed.
func TestFaultsAreTested(t *testing.T) {
	tests := testsByDir(t)
	all, err := named.Read(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	byNumber := map[string]string{}
	number := regexp.MustCompile(`^TestFault(\d{2})(?:And(\d{2}))?`)
	for dir, names := range tests {
		for _, test := range names {
			for _, n := range number.FindStringSubmatch(test) {
				byNumber[n] = dir
			}
			if number.MatchString(test) && !slices.ContainsFunc(all, func(n named.Test) bool { return n.Dir == dir && n.Name == test }) {
				t.Errorf("docs/faults.md does not name %s of %s", test, dir)
			}
		}
	}
	for n := 1; n <= 37; n++ {
		if n > 28 && n < 37 {
			continue // files, locks and the ledger
		}
		if byNumber[fmt.Sprintf("%02d", n)] == "" {
			t.Errorf("no test has a name that begins with TestFault%02d", n)
		}
	}
}

// TestNamedTestsExist: every test that docs/faults.md and docs/scenarios.md name exists.
// scripts/test checks that it ran and passed, in a run of all packages.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	all, err := named.Read(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsByDir(t)
	suite, err := os.ReadFile(filepath.Join(named.Shared, "exercise.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		top, sub, _ := strings.Cut(n.Name, "/")
		ok := slices.Contains(tests[n.Dir], top)
		switch {
		case n.Dir == named.Shared:
			ok = strings.Contains(string(suite), `"`+path.Base(sub)+`"`)
		case n.Dir == named.Scripts && top == "TestScripts":
			_, err := os.Stat(filepath.Join(n.Dir, "testdata", "script", sub+".txtar"))
			ok = err == nil
		}
		if !ok {
			t.Errorf("%s: %s has no %s", n.Doc, n.Dir, n.Name)
		}
	}
}

// testsByDir are the names of all tests by the directories of their packages.
func testsByDir(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	for _, f := range goFiles(t) {
		if !f.test {
			continue
		}
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
				tests[f.dir] = append(tests[f.dir], fn.Name.Name)
			}
		}
	}
	return tests
}

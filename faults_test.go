package teamctl_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFaultsAreTested: docs/faults.md names tests that there are, and what can go wrong
// with processes, tmux, terminals and the supervisor has each a test by its number.
func TestFaultsAreTested(t *testing.T) {
	tests := testsByDir(t)
	byNumber := map[string]string{}
	number := regexp.MustCompile(`^TestFault(\d{2})(?:And(\d{2}))?`)
	for dir, names := range tests {
		for _, test := range names {
			for _, n := range number.FindStringSubmatch(test) {
				byNumber[n] = dir
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

	text, err := os.ReadFile("docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	place, name := regexp.MustCompile("`([^`]+)`([^`]*)"), regexp.MustCompile(`\bTest\w+`)
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		for _, p := range place.FindAllStringSubmatch(cells[4], -1) {
			for _, test := range name.FindAllString(p[2], -1) {
				named++
				if !slices.Contains(tests[p[1]], test) {
					t.Errorf("docs/faults.md: %s has no %s", p[1], test)
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d tests were found in docs/faults.md", named)
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
		file, err := parser.ParseFile(token.NewFileSet(), f.path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				tests[f.dir] = append(tests[f.dir], fn.Name.Name)
			}
		}
	}
	return tests
}

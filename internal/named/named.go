// Package named reads which tests the documents name as evidence:
// docs/faults.md and docs/scenarios.md. The tests of the repository check that
// these exist, scripts/test that they ran and passed.
package named

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Test is a test named by a document.
type Test struct {
	Doc string // the first document that names it
	Dir string // directory of its package
	// Name of a test function; for a script the name of its subtest,
	// TestScripts/NAME. For backends/backendtest, which has no tests of its
	// own, TestExercise/parts/CASE: a case that every backend's TestExercise
	// runs if the backend supports it.
	Name string
}

// Shared is the directory of the suite that the backends' TestExercise runs.
const Shared = "backends/backendtest"

// Scripts is the directory of the package whose TestScripts runs the scripts.
const Scripts = "cmd/teamctl"

// Read returns the tests named by the documents below root, each once, in
// order.
func Read(root fs.FS) ([]Test, error) {
	var all []Test
	seen := map[Test]bool{}
	for _, d := range []struct {
		path  string
		cells int // of a row that counts
		cell  int // names the tests
	}{{"docs/faults.md", 5, 4}, {"docs/scenarios.md", 5, 3}} {
		text, err := fs.ReadFile(root, d.path)
		if err != nil {
			return nil, err
		}
		found := 0
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(line, "|")
			if len(cells) < d.cells {
				continue
			}
			for _, t := range inCell(cells[d.cell]) {
				t.Doc = d.path
				found++
				if key := (Test{Dir: t.Dir, Name: t.Name}); !seen[key] {
					seen[key] = true
					all = append(all, t)
				}
			}
		}
		if found < 50 {
			return nil, fmt.Errorf("%s: only %d tests were found in its tables", d.path, found)
		}
	}
	return all, nil
}

// inCell finds the tests in a cell: a directory in backquotes and the names
// after it, or a script.
func inCell(cell string) []Test {
	place := regexp.MustCompile("(script )?`([^`]+)`([^`]*)")
	name := regexp.MustCompile(`\b(?:Test|Fuzz)\w+(?:/\w+)?|\b\w+\.txtar\b`)
	shared := regexp.MustCompile(`\b[a-z][a-z_]+\b`)
	var out []Test
	for _, p := range place.FindAllStringSubmatch(cell, -1) {
		switch script, dir, rest := p[1], p[2], p[3]; {
		case script != "":
			out = append(out, Test{Dir: Scripts, Name: "TestScripts/" + dir})
		case dir == Shared:
			rest, _, _ = strings.Cut(rest, ";")
			rest, _, _ = strings.Cut(rest, "(")
			for _, c := range shared.FindAllString(rest, -1) {
				out = append(out, Test{Dir: dir, Name: "TestExercise/parts/" + c})
			}
		default:
			for _, n := range name.FindAllString(rest, -1) {
				if script, ok := strings.CutSuffix(n, ".txtar"); ok {
					n = "TestScripts/" + script
				}
				out = append(out, Test{Dir: dir, Name: n})
			}
		}
	}
	return out
}

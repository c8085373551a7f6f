package teamctl_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The core of the supervisor keeps members and their transitions. It stays small enough to be read
// in one sitting: what else a supervisor does goes into a package below it, which is tested alone on
// the double of its loop.
const (
	coreLines    = 4000 // of package supervisor itself, without tests
	structFields = 20   // of a struct of it, or of a package below it; an embedded one counts once
)

func TestPlanOfSupervisor(t *testing.T) {
	t.Parallel()
	lines := 0
	err := filepath.WalkDir("supervisor", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Dir(path) == "supervisor" {
			lines += bytes.Count(text, []byte("\n"))
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok && s.Fields.NumFields() > structFields {
				t.Errorf("%s: a struct of %d fields, want at most %d: move those of one concern together, or out", files.Position(s.Pos()), s.Fields.NumFields(), structFields)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines > coreLines || lines < 1000 {
		t.Errorf("package supervisor has %d lines, want 1000 to %d: move a concern into a package below it", lines, coreLines)
	}
}

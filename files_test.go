package teamctl_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// goFile is one Go file of the tree: slash-separated path and directory below
// the root, its package clause, its imports and its syntax tree.
type goFile struct {
	path, dir string
	pkg, doc  string
	test      bool
	imports   []string
	tree      *ast.File
}

// fileSet has the positions of all trees.
var fileSet = token.NewFileSet()

// goFiles returns every Go file that the go tool would see, whatever its build
// constraints, in order of path. Every caller gets the same trees, so none changes them.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	files, err := readTree()
	if err != nil {
		t.Fatalf("read the tree: %v", err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d Go files found: the test does not run in the root of the repository", len(files))
	}
	return files
}

var readTree = sync.OnceValues(func() (files []goFile, err error) {
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != "." && (name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_') {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); p != "." && err == nil {
				return filepath.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || name[0] == '.' || name[0] == '_' {
			return nil
		}
		f, err := parser.ParseFile(fileSet, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		g := goFile{
			tree: f,
			path: filepath.ToSlash(p), dir: path.Dir(filepath.ToSlash(p)),
			pkg: f.Name.Name, doc: f.Doc.Text(), test: strings.HasSuffix(name, "_test.go"),
		}
		for _, i := range f.Imports {
			imp, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			g.imports = append(g.imports, imp)
		}
		files = append(files, g)
		return nil
	})
	slices.SortFunc(files, func(a, b goFile) int { return cmp.Compare(a.path, b.path) })
	return files, err
})

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// long finds the tests that have a short form, by the directories of their packages: those
// that ask testing.Short, or call rapid.Check, which does. Only a test itself may. A
// function that several tests call takes a number or a switch instead: else this could not
// tell which they are.
func long(root string) (map[string][]string, error) {
	out := map[string][]string{}
	var errs []error
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if !asksShort(decl) {
				continue
			}
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || !strings.HasSuffix(path, "_test.go") {
				errs = append(errs, fmt.Errorf("%s: testing.Short or rapid.Check is called outside of a test", path))
				continue
			}
			out[dir] = append(out[dir], fn.Name.Name)
		}
		return nil
	})
	return out, errors.Join(append(errs, err)...)
}

// asksShort reports whether a declaration calls testing.Short or rapid.Check.
func asksShort(decl ast.Decl) (asks bool) {
	ast.Inspect(decl, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				asks = asks || x.Name == "testing" && sel.Sel.Name == "Short" || x.Name == "rapid" && sel.Sel.Name == "Check"
			}
		}
		return !asks
	})
	return asks
}

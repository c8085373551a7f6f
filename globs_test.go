package teamctl_test

import (
	"go/ast"
	"strings"
	"testing"
)

// TestPathsInPatternsAreEscaped: the directory in a pattern is somebody's, and may have the
// characters of a pattern in its name. filepath.Glob finds nothing then, without an error.
func TestPathsInPatternsAreEscaped(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || strings.HasPrefix(f.path, "scripts/") || strings.HasPrefix(f.path, "bench/") {
			continue // these choose their directories
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !calls(call, "filepath", "Glob") {
				return true
			}
			escaped := false
			ast.Inspect(call.Args[0], func(n ast.Node) bool {
				inner, ok := n.(*ast.CallExpr)
				escaped = escaped || ok && calls(inner, "glob", "Escape")
				return true
			})
			if !escaped {
				t.Errorf("%s: the pattern has no glob.Escape", fileSet.Position(call.Pos()))
			}
			return true
		})
	}
}

// calls reports whether a call is one of pkg.name.
func calls(c *ast.CallExpr, pkg, name string) bool {
	fun, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || fun.Sel.Name != name {
		return false
	}
	x, ok := fun.X.(*ast.Ident)
	return ok && x.Name == pkg
}

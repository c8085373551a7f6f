package teamctl_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPathsInCommandsAreQuoted: a hint is pasted into a shell, so what follows a command that
// takes a path there is quoted for one (team.ShellQuote, team.ShellLine).
func TestPathsInCommandsAreQuoted(t *testing.T) {
	takes := regexp.MustCompile(`(^|[^a-z])(git -C|rm|mv|cp|ls|lsof|chmod [a-z0-9+-]+|chown [a-z0-9]+|tmux -S|teamctl [a-z ]*-f|--config-dir)( -[A-Za-z]+)* ?$`)
	for _, f := range goFiles(t) {
		if f.test || strings.HasPrefix(f.path, "scripts/") || strings.HasPrefix(f.path, "bench/") {
			continue // nobody pastes what these run
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			sum, ok := n.(*ast.BinaryExpr)
			if !ok || sum.Op != token.ADD {
				return true
			}
			before := sum.X
			if left, ok := before.(*ast.BinaryExpr); ok {
				before = left.Y
			}
			lit, ok := before.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(lit.Value); err != nil || !takes.MatchString(text) {
				return true
			}
			if call, ok := sum.Y.(*ast.CallExpr); ok {
				if fun, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(fun.Sel.Name, "Shell") {
					return true
				}
			}
			t.Errorf("%s: what follows %s is not quoted for a shell", fileSet.Position(sum.Y.Pos()), lit.Value)
			return true
		})
	}
}

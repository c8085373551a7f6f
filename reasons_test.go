package teamctl_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestReasonsAreConstants: programs compare the reasons of errors, so each is spelled
// once, as a constant.
func TestReasonsAreConstants(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, at := range literalReasons(f.tree) {
			t.Errorf("%s: the reason of an error as a literal: use a constant of team/reasons.go", fileSet.Position(at))
		}
		// The rooms of backends name why a process has ended, in words.
		if room, _, _ := strings.Cut(f.path, "/"); room == "team" || room == "backends" {
			continue
		}
		for _, at := range reasonsOfItsOwn(f.tree) {
			t.Errorf("%s: a reason of an error belongs in team/reasons.go", fileSet.Position(at))
		}
	}
}

// literalReasons finds the reasons of errors that are literals: arguments of WithReason, and what
// looks like one in a variable or field called reason.
func literalReasons(file *ast.File) (found []token.Pos) {
	like := regexp.MustCompile(`^"[a-z_]+"$`)
	named := func(e, value ast.Expr) {
		if s, ok := e.(*ast.SelectorExpr); ok {
			e = s.Sel
		}
		if id, ok := e.(*ast.Ident); !ok || id.Name != "reason" {
			return
		}
		if l, ok := value.(*ast.BasicLit); ok && like.MatchString(l.Value) {
			found = append(found, l.Pos())
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "WithReason" && len(n.Args) == 1 {
				if l, ok := n.Args[0].(*ast.BasicLit); ok {
					found = append(found, l.Pos())
				}
			}
		case *ast.KeyValueExpr:
			named(n.Key, n.Value)
		case *ast.AssignStmt:
			if len(n.Lhs) == len(n.Rhs) {
				for i := range n.Lhs {
					named(n.Lhs[i], n.Rhs[i])
				}
			}
		}
		return true
	})
	return found
}

// reasonsOfItsOwn finds the constants that a file declares for reasons.
func reasonsOfItsOwn(file *ast.File) (found []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.ValueSpec)
		if !ok || len(c.Names) != 1 || len(c.Values) != 1 || !strings.HasPrefix(c.Names[0].Name, "Reason") {
			return true
		}
		if _, ok := c.Values[0].(*ast.BasicLit); ok {
			found = append(found, c.Pos())
		}
		return true
	})
	return found
}

// TestStateReasonsAreConstants: the reasons of a member's state are spelled once, in
// team/state_reasons.go.
func TestStateReasonsAreConstants(t *testing.T) {
	for _, f := range goFiles(t) {
		if room, _, _ := strings.Cut(f.path, "/"); f.test || room != "supervisor" && room != "backends" {
			continue
		}
		for _, at := range literalStateReasons(f.tree) {
			t.Errorf("%s: the reason of a state as a literal: use a constant of team/state_reasons.go", fileSet.Position(at))
		}
	}
}

// literalStateReasons finds the reasons of exits, verdicts and members that are, or begin with, a
// literal.
func literalStateReasons(file *ast.File) (found []token.Pos) {
	first := func(e ast.Expr) ast.Expr {
		for {
			b, ok := e.(*ast.BinaryExpr)
			if !ok {
				return e
			}
			e = b.X
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		name := ""
		switch typ := lit.Type.(type) {
		case *ast.SelectorExpr:
			name = typ.Sel.Name
		case *ast.Ident:
			name = typ.Name
		}
		if name != "Exit" && name != "Verdict" && name != "MemberPatch" {
			return true
		}
		for _, e := range lit.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if key, is := kv.Key.(*ast.Ident); ok && is && key.Name == "Reason" {
				if l, ok := first(kv.Value).(*ast.BasicLit); ok {
					found = append(found, l.Pos())
				}
			}
		}
		return true
	})
	return found
}

// TestLiteralReasons shows that TestReasonsAreConstants would notice.
func TestLiteralReasons(t *testing.T) {
	for code, want := range map[string]int{`err.WithReason("x").WithHint("y")`: 1, `err.WithReason(team.ReasonRole)`: 0, `err.WithHint("y")`: 0,
		`s{reason: "no_x"}`: 1, `s{reason: team.ReasonRole}`: 0, `s{reason: "in words"}`: 0, `func() { s.reason = "no_x" }`: 1} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nvar _ = "+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := literalReasons(file); len(got) != want {
			t.Errorf("%s: %d literals, want %d", code, len(got), want)
		}
	}
	for code, want := range map[string]int{`Exit{Reason: "x"}`: 1, `a.Verdict{Next: 1, Reason: "x: " + y}`: 1, `a.Exit{Reason: team.WhyOOM}`: 0, `StopRequest{Reason: "x"}`: 0} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nvar _ = "+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := literalStateReasons(file); len(got) != want {
			t.Errorf("%s: %d literals, want %d", code, len(got), want)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nconst ReasonX = \"x\"\nconst Why = \"y\"", 0)
	if err != nil || len(reasonsOfItsOwn(file)) != 1 {
		t.Errorf("%d reasons, want 1; %v", len(reasonsOfItsOwn(file)), err)
	}
}

// TestReasonTableHasAllConstants: docs/cli-json.md is generated from the table.
func TestReasonTableHasAllConstants(t *testing.T) {
	tableHasAll(t, "team/reasons.go", "Reason")
	tableHasAll(t, "team/state_reasons.go", "Why")
	tableHasAll(t, "team/state_reasons.go", "Stop")
	seen := map[string]bool{}
	for _, w := range team.Reasons() {
		if w.Means == "" || seen[w.Name] {
			t.Errorf("%s: twice, or without a meaning", w.Name)
		}
		seen[w.Name] = true
	}
}

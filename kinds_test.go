package teamctl_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestAgentKindsAreCompared: what a kind of agent can do is a field of team.AgentKind or
// a function of the adapter. A comparison of its name anywhere else is a second table,
// which the next kind is missing from.
func TestAgentKindsAreCompared(t *testing.T) {
	for _, f := range goFiles(t) {
		switch home := roomOf(f.dir); {
		case f.test, slices.Contains([]string{"team", "internal/adapter", "internal/fakecli", "scripts", "bench"}, home),
			strings.HasPrefix(f.dir, "internal/agentlab"): // drives the real programs, for scripts
			continue
		}
		for _, at := range kindComparisons(f.tree) {
			t.Errorf("%s: a kind of agent is told by its name: ask team.KindOf or the adapter", fileSet.Position(at))
		}
	}
}

// kindComparisons finds where names of kinds are compared, switched on, or listed.
func kindComparisons(file *ast.File) (found []token.Pos) {
	names := []string{team.AgentWorker, team.AgentLLM, team.AgentCommand, team.AgentLead, team.AgentExternal, team.AgentClaude,
		team.AgentCodex, team.AgentGemini, team.AgentOpencode, team.AgentACP, team.AgentGeneric}
	literal := func(e ast.Expr) bool {
		l, ok := e.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return false
		}
		s, err := strconv.Unquote(l.Value)
		return err == nil && slices.Contains(names, s)
	}
	// constant reports whether e is team.AgentX, or adapter.X with the name of a kind.
	constant := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		of, _ := s.X.(*ast.Ident)
		if of == nil || of.Name != "team" && of.Name != "adapter" {
			return false
		}
		return slices.Contains(names, strings.ToLower(strings.TrimPrefix(s.Sel.Name, "Agent")))
	}
	// agent reports whether e is called as what holds a kind: a word like "command" is
	// no kind everywhere.
	agent := func(e ast.Expr) bool {
		name := ""
		switch e := e.(type) {
		case *ast.Ident:
			name = e.Name
		case *ast.SelectorExpr:
			name = e.Sel.Name
		}
		return slices.Contains([]string{"agent", "cli"}, strings.ToLower(name))
	}
	add := func(n ast.Node) { found = append(found, n.Pos()) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				break
			}
			for _, side := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
				if constant(side[0]) || agent(side[1]) && literal(side[0]) {
					add(n)
				}
			}
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					if constant(e) || n.Tag != nil && agent(n.Tag) && literal(e) {
						add(e)
					}
				}
			}
		case *ast.CompositeLit: // a list to look a kind up in
			kinds := 0
			for _, e := range n.Elts {
				if literal(e) || constant(e) {
					kinds++
				}
			}
			if kinds > 1 {
				add(n)
			}
		}
		return true
	})
	return found
}

// TestKindComparisons shows that TestAgentKindsAreCompared would notice.
func TestKindComparisons(t *testing.T) {
	for code, want := range map[string]int{
		`m.Spec.Agent == "worker"`: 1, `"worker" != agent`: 1, `x == adapter.Claude`: 1, `team.AgentExternal != x`: 1,
		`slices.Contains([]string{"", "claude", "codex"}, x)`: 1, `func() { switch agent { case "acp", "claude": } }`: 2,
		`args[0] == "acp"`: 0, `m.Spec.Agent == ""`: 0, `kind == "command"`: 0, `adapter.Wait == x`: 0, `f(team.AgentExternal)`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nvar _ = "+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := kindComparisons(file); len(got) != want {
			t.Errorf("%s: %d comparisons, want %d", code, len(got), want)
		}
	}
}

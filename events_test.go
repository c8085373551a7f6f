package teamctl_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// eventPrefixes are what event names of many states begin with.
var eventPrefixes = []string{team.TaskEvents, team.MessageEvents, team.ApprovalEvents, team.MergeEvents, team.TurnEvents, team.MemberEvents}

// TestEventNamesAreConstants: an event's name is spelled once, in team/events.go.
func TestEventNamesAreConstants(t *testing.T) {
	foreign := []string{"internal/fakecli", "internal/fakemodel", "internal/courier/opencode", "agent/model"} // names of other protocols
	for _, f := range goFiles(t) {
		// ledger/ops.go names operations, of which one is called like an event.
		if f.test || f.dir == "team" || f.path == "ledger/ops.go" || slices.ContainsFunc(foreign, func(dir string) bool { return f.dir == dir || strings.HasPrefix(f.dir, dir+"/") }) {
			continue
		}
		for _, at := range literalEvents(f.tree) {
			t.Errorf("%s: the name of an event as a literal: use team.Event...", fileSet.Position(at))
		}
	}
}

// literalEvents finds literals that are the name of an event, or are used as one.
func literalEvents(file *ast.File) (found []token.Pos) {
	literal := func(e ast.Node) (string, bool) {
		l, ok := e.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(l.Value)
		return s, err == nil
	}
	add := func(n ast.Node) {
		if !slices.Contains(found, n.Pos()) {
			found = append(found, n.Pos())
		}
	}
	last := func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.Ident:
			return e.Name
		case *ast.SelectorExpr:
			return e.Sel.Name
		}
		return ""
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			s, ok := literal(n)
			if ok && (slices.Contains(eventPrefixes, s) || slices.ContainsFunc(team.Events(), func(w team.Word) bool { return w.Name == s })) {
				add(n)
			}
		case *ast.CompositeLit: // Event{What: "..."}, EventFilter{What: "..."}
			if name := last(n.Type); name != "Event" && name != "EventFilter" {
				break
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && last(kv.Key) == "What" {
					if _, is := literal(kv.Value); is {
						add(kv.Value)
					}
				}
			}
		case *ast.CallExpr: // the writers of the ledger that take a name
			if name := last(n.Fun); (name == "taskEvent" || name == "jobEvent") && len(n.Args) > 0 {
				if _, is := literal(n.Args[0]); is {
					add(n.Args[0])
				}
			}
		}
		return true
	})
	return found
}

// TestLiteralEvents shows that TestEventNamesAreConstants would notice.
func TestLiteralEvents(t *testing.T) {
	for code, want := range map[string]int{
		`e.What == "task.claimed"`: 1, `Event{What: "new.one"}`: 1, `t.taskEvent("new.one", x)`: 1, `ledger.EventFilter{What: "task."}`: 1,
		`team.EventTaskClaimed`: 0, `"task.claim"`: 0, `Change{What: "task"}`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nvar _ = "+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := literalEvents(file); len(got) != want {
			t.Errorf("%s: %d literals, want %d", code, len(got), want)
		}
	}
}

// TestEventsOfStates: where a name ends in the new state, each state has its name.
func TestEventsOfStates(t *testing.T) {
	var want []string
	for _, s := range []team.DeliveryState{team.Posted, team.Mailed, team.Held, team.Injected, team.Accepted, team.Read, team.Answered, team.Dropped} {
		want = append(want, team.MessageEvents+string(s))
	}
	for _, s := range []ledger.ApprovalState{ledger.ApprovalApproved, ledger.ApprovalRejected, ledger.ApprovalExpired} {
		want = append(want, team.ApprovalEvents+string(s))
	}
	for _, s := range []ledger.MergeState{ledger.MergeQueued, ledger.MergeGating, ledger.MergeLanding, ledger.MergeLanded, ledger.MergeContained,
		ledger.MergeConflict, ledger.MergeRed, ledger.MergeFailed, ledger.MergeCanceled} {
		want = append(want, team.MergeEvents+string(s))
	}
	for _, s := range []team.TurnState{team.TurnDone, team.TurnFailed, team.TurnCancelled, team.TurnSteered} {
		want = append(want, team.TurnEvents+string(s))
	}
	var names []string
	for _, w := range team.Events() {
		if w.Means == "" || slices.Contains(names, w.Name) {
			t.Errorf("%s: twice, or without a meaning", w.Name)
		}
		names = append(names, w.Name)
	}
	for _, name := range want {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not in the table of team/events.go", name)
		}
	}
}

// TestEventTableHasAllConstants: a constant that the table lacks would be missing from docs/cli-json.md.
func TestEventTableHasAllConstants(t *testing.T) { tableHasAll(t, "team/events.go", "Event") }

// tableHasAll compares the constants of a file whose names begin with prefix with the entries of its table.
func tableHasAll(t *testing.T, path, prefix string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && strings.HasPrefix(id.Name, prefix) && id.Name != prefix+"s" {
			uses[id.Name]++
		}
		return true
	})
	if len(uses) == 0 {
		t.Errorf("%s has no constants %s...", path, prefix)
	}
	for name, n := range uses {
		if n != 2 {
			t.Errorf("%s: %s stands in the table %d times", path, name, n-1)
		}
	}
}

package tui

import (
	"context"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// overlapping is a team whose members change cart.go: the first two the same lines, the third another one, and the
// fourth a later content. No other changes price.go.
type overlapping struct{ fuzzed }

func (s *overlapping) Changes(_ context.Context, member, since string) (view.Changes, error) {
	if since != "" {
		return view.Changes{}, team.Errorf(team.CodeInvalid, "compared since %q", since)
	}
	const from1, from2 = "index 1111111..2222222 100644\n", "index 3333333..4444444 100644\n"
	const head = "--- a/cart.go\n+++ b/cart.go\n@@ -39,4 +39,5 @@ type Cart struct\n // Total is what it costs.\n"
	c := view.Changes{Member: member, Against: "main", Also: map[string][]string{}}
	patch := "diff --git a/cart.go b/cart.go\n"
	switch member {
	case "worker-1":
		patch = strings.ReplaceAll(cartPatch, "--- a/", from1+"--- a/")
	case "worker-2":
		patch += from1 + head + "-func (c *Cart) Total() Money {\n-\treturn c.sum\n+func (c *Cart) Total() (Money, error) {\n+\treturn c.sum, nil\n }\n"
		c.Comments = []view.Comment{{Name: "1.1", State: "open", Path: "cart.go", First: 41, Last: 41, Text: "which error?"}}
	case "worker-3":
		patch += from1 + "--- a/cart.go\n+++ b/cart.go\n@@ -3,2 +3,3 @@\n \n+import \"fmt\"\n \n"
	case "worker-4":
		patch += from2 + head + "-func (c *Cart) Total() Money {\n+func (c *Cart) Sum() Money {\n \treturn c.sum\n }\n"
	}
	for _, name := range []string{"worker-4", "worker-2", "worker-1", "worker-3"} {
		if name != member {
			c.Also["cart.go"] = append(c.Also["cart.go"], name)
		}
	}
	c.Patch = patch
	return c, nil
}

// TestAcross checks that a file is shown as all members change it, with the lines that more than one of them
// changes marked, and that it leads to the changes of each and back.
func TestAcross(t *testing.T) {
	t.Parallel()
	s := newOnPaper(t, &overlapping{}, &overlapping{})
	m := s.m
	m.at = inChanges
	m.changes = view.Changes{Member: "worker-1"}
	s.readPlace()
	s.shows("cart.go  also")
	m.choose("file:price.go")
	s.presses("O")
	if m.across.path != "" || !strings.Contains(m.toast, "no other member changes price.go") {
		t.Errorf("a file of one member: %q, %+v", m.toast, m.across)
	}
	m.choose("file:cart.go")
	s.presses("O")
	s.shows("CHANGES of cart.go of 4 members")
	golden(t, "across.txt", text(m.draw()))
	s.presses("j")
	s.shows("which error?")
	if got := m.target(); got.Member == nil || got.Member.Name != "worker-2" || got.Change.Path != "cart.go" || got.Change.Lines != "" {
		t.Errorf("an action would be on %+v", got)
	}
	s.presses("j")
	s.shows(`import "fmt"`)
	if strings.Contains(strip(strings.Join(m.crossLines(m.must(t), 60, 20), "\n")), "!") {
		t.Error("lines of worker-3 alone are marked")
	}
	s.presses("b", "v", "k", "enter")
	s.shows("›40 - func (c *Cart)")
	if !m.diff.in || m.diff.path != "cart.go" || m.across.path != "" {
		t.Errorf("Enter leads to %+v, %+v", m.diff, m.across)
	}
	s.presses("esc", "O")
	s.shows("CHANGES of cart.go of 4 members")
	s.presses("O")
	s.shows("CHANGES of worker-2 against main")
	if it := m.must(t); it.id != "file:cart.go" {
		t.Errorf("back leads to %s", it.id)
	}
	s.presses("O")
	s.shows("CHANGES of cart.go of 4 members")
	s.presses("2", "5")
	s.shows("CHANGES of worker-2 against main")
}

// TestAcrossScrolls checks that the keys of changes go from one shared run to the next, in one column and in
// two.
func TestAcrossScrolls(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("diff --git a/f b/f\nindex 1111111..2222222 100644\n--- a/f\n+++ b/f\n@@ -1,200 +1,200 @@\n")
	for i := 1; i <= 200; i++ {
		if i%50 == 0 {
			b.WriteString("-old\n+new\n")
			continue
		}
		b.WriteString(" same\n")
	}
	for _, cols := range []int{120, 170} {
		m := shownOf(crowd(8), cols, 24)
		m.at = inChanges
		r := &run{m: m}
		m.across = across{path: "f", from: "worker-1", list: view.AcrossMembers("f", []view.Changes{{Member: "worker-1", Patch: b.String()}, {Member: "worker-2", Patch: b.String()}})}
		m.refresh()
		m.choose(crossID("worker-2"))
		seen := []int{}
		for range 5 {
			m.draw()
			r.inAcross("next-change")
			seen = append(seen, m.scroll)
		}
		for i := 1; i < 4; i++ {
			if seen[i] <= seen[i-1] {
				t.Errorf("%d columns: next is at %v", cols, seen)
				break
			}
		}
		frame := text(m.draw())
		if !strings.Contains(frame, "new") || !strings.Contains(frame, "!") {
			t.Errorf("%d columns: the last shared line is not shown:\n%s", cols, frame)
		}
		r.inAcross("previous-change")
		if m.scroll >= seen[4] {
			t.Errorf("%d columns: the one before %d is at %d", cols, seen[4], m.scroll)
		}
	}
}

// must is the selected row.
func (m *model) must(t *testing.T) item {
	t.Helper()
	it, ok := m.row()
	if !ok {
		t.Fatal("no row is selected")
	}
	return it
}

package tui

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// shop is a team in the middle of a day, as docs/screens shows it.
func shop() view.Snapshot {
	member := func(name, agent string, doing team.Activity, since time.Duration, cost float64) view.Member {
		return view.Member{Name: name, Color: "blue", Agent: agent, State: team.Running, Activity: doing, ActiveSince: ago(since), Cost: cost, CostKnown: cost > 0}
	}
	task := func(id, subject, owner string, status team.TaskStatus, began, took time.Duration) view.Task {
		x := view.Task{ID: id, Subject: subject, Owner: owner, Status: status, Attempt: 1}
		if began > 0 {
			x.Began = ago(began)
		}
		if took > 0 {
			x.Ended = x.Began.Add(took)
		}
		return x
	}
	builder, api, docs, cart, lint := member("builder", "claude", team.Waiting, 5*time.Minute, 1.9), member("api", "codex", team.Waiting, 2*time.Minute, .8),
		member("docs", "gemini", team.Working, 12*time.Second, 0), member("cart", "claude", team.Working, 3*time.Minute, .7), member("lint", "worker", team.Idle, time.Hour, 0)
	builder.WaitsFor, api.WaitsFor = "permission 1", "plan 2"
	s := view.Snapshot{
		Team: "shop", Repo: "/src/shop", Spent: view.Spent{Known: true, Tokens: 1_240_000, CostKnown: true, Cost: 3.4},
		Members: []view.Member{{Name: team.LeadName, Lead: true, State: team.Running}, builder, api, cart, docs, lint,
			{Name: "probe", Agent: "command", State: team.Failed, Note: "exit 127, 8 x", ActiveSince: ago(4 * time.Minute)}},
		Tasks: []view.Task{
			task("1", "round the prices", "cart", team.TaskCompleted, 20*time.Minute, 4*time.Minute), task("2", "unit tests of the cart", "builder", team.TaskCompleted, 16*time.Minute, 6*time.Minute),
			task("3", "integration tests", "builder", team.TaskFailed, 9*time.Minute, 5*time.Second), task("4", "publish the package", "builder", team.TaskInProgress, 6*time.Minute, 0),
			task("5", "release notes", "cart", team.TaskInProgress, 3*time.Minute, 0), task("6", "tutorial", "docs", team.TaskInProgress, 12*time.Second, 0),
			{ID: "7", Subject: "translate the tutorial", Status: team.TaskPending, Waits: []string{"6"}}, {ID: "8", Subject: "deploy", Status: team.TaskPending, Waits: []string{"3"}, Stuck: true},
			{ID: "9", Subject: "clean the fixtures", Status: team.TaskPending},
		},
		Needs: []view.Need{
			{Kind: view.NeedPermission, Member: "builder", Approval: 1, Text: "Bash: npm publish --tag next", Since: ago(5 * time.Minute), Command: "teamctl show approval 1"},
			{Kind: view.NeedPlan, Member: "api", Approval: 2, Text: "rename the flag, keep the old one for a release", Since: ago(2 * time.Minute), Command: "teamctl show approval 2"},
			{Kind: view.NeedMember, Member: "probe", Text: "exit 127, 8 x", Since: ago(4 * time.Minute), Command: "teamctl show member probe"},
			{Kind: view.NeedTask, Member: "builder", Task: "3", Text: "integration tests: 2 of 40 failed", Since: ago(9 * time.Minute), Command: "teamctl show task 3"},
		},
		Events: []view.Event{
			{At: ago(6 * time.Minute), Who: "cart", Text: "cart finished 1 round the prices"}, {At: ago(5 * time.Minute), Who: "builder", Text: "builder asks: npm publish --tag next"},
			{At: ago(12 * time.Second), Who: "docs", Text: "docs took 6 tutorial"},
		},
	}
	return s
}

// TestPictures checks that the pictures in docs/screens show the screens as they are drawn now;
// scripts/screens writes them.
func TestPictures(t *testing.T) {
	t.Parallel()
	changes := view.Changes{Member: "cart", Base: "main", Comments: []view.Comment{
		{Name: "1.1", State: "handled", Path: "price.go", First: 2, Last: 2, Text: "name the unit", Answer: "in cents now"},
		{Name: "2.1", State: "draft", Path: "price.go", First: 4, Last: 4, Text: "why two? the currency knows its digits"},
	}}
	diff := "diff --git a/cart.go b/cart.go\n--- a/cart.go\n+++ b/cart.go\n@@ -1 +1 @@\n-a\n+b\n" +
		"diff --git a/price.go b/price.go\n--- a/price.go\n+++ b/price.go\n@@ -1,4 +1,5 @@\n package shop\n+// A Price is in cents.\n func (p Price) Rounded() Price {\n-\treturn p.sum\n+\treturn p.sum.Round(2)\n }\n"
	for _, p := range []struct {
		name       string
		cols, rows int
		with       func(*model)
	}{
		{"home", 108, 26, func(*model) {}},
		{"small", 40, 10, func(*model) {}},
		{"needs", 108, 20, func(m *model) { m.at = inNeeds }},
		{"tasks", 108, 20, func(m *model) { m.at = inTasks }},
		{"changes", 108, 20, func(m *model) {
			m.at, m.changes, m.files, m.cursor = inChanges, changes, view.ParseDiff(diff), "file:price.go"
			m.diff = cursor{in: true, path: "price.go", at: 5}
		}},
	} {
		m := shownOf(shop(), p.cols, p.rows)
		m.style = Style{On: true}
		asked := m.request[1]
		asked.Branch, asked.Description, asked.Rule = "teamctl/shop/builder", "publish the release candidate", "allow tool shell, command npm publish --tag next"
		m.request[1] = asked
		p.with(m)
		m.refresh()
		got := picture(m.draw().lines, p.cols)
		path := filepath.Join("..", "..", "docs", "screens", p.name+".svg")
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != got {
			t.Errorf("%s is stale, %v: scripts/screens writes it", path, err)
		}
	}
}

// picture is a drawn screen as an SVG.
func picture(lines []string, cols int) string {
	const wide, high = 8.4, 18.0
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d">`+"\n", int(float64(cols)*wide)+16, int(float64(len(lines))*high)+16)
	b.WriteString("<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d4d4d4;white-space:pre}" +
		".b{font-weight:700;fill:#fff}.d{fill:#8a8a8a}.r{fill:#f48771}.g{fill:#89d185}.y{fill:#e2c08d}.c{fill:#75beff}</style>\n" +
		`<rect width="100%" height="100%" rx="6" fill="#1e1e1e"/>` + "\n")
	classes := map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c"}
	for i, line := range lines {
		at, class := 0, ""
		for j, part := range strings.Split(line, "\x1b[") {
			if j > 0 {
				code, rest, _ := strings.Cut(part, "m")
				class, part = classes[code], rest
			}
			w := view.Width(part)
			if text := strings.TrimLeft(part, " "); strings.TrimSpace(text) != "" {
				indent := w - view.Width(text)
				text = strings.TrimRight(text, " ")
				attr := ""
				if class != "" {
					attr = ` class="` + class + `"`
				}
				fmt.Fprintf(&b, `<text%s x="%.1f" y="%.0f" textLength="%.1f">%s</text>`+"\n", attr, 8+float64(at+indent)*wide, 8+float64(i+1)*high-5, float64(view.Width(text))*wide, html.EscapeString(text))
			}
			at += w
		}
	}
	return b.String() + "</svg>\n"
}

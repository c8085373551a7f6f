package web

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/page"
	"github.com/teamctl/teamctl/internal/view/viewtest"
	"github.com/teamctl/teamctl/internal/web/webtest"
)

// audit runs axe-core in the document as it is shown and returns its serious and critical findings.
const audit = `axe.run(document, {preload: false, resultTypes: ['violations']}).then((r) => r.violations
	.filter((v) => v.impact === 'serious' || v.impact === 'critical')
	.map((v) => v.impact + ' ' + v.id + ': ' + v.help + '\n' + v.nodes.map((n) => '    ' + n.html.slice(0, 200) + '\n      ' +
		(n.failureSummary || '').replace(/\s+/g, ' ')).slice(0, 5).join('\n')))`

// TestAccessible checks that axe-core has no serious finding in any kind of document, at the sizes of
// a desk and of a phone, light and dark.
func TestAccessible(t *testing.T) {
	t.Parallel()
	axe := webtest.Module(t, "TEAMCTL_TEST_AXE", "axe-core/axe.min.js")
	b := webtest.Start(t)
	r, tab := browse(t, b, webtest.Desktop)
	check := func(what string) {
		t.Helper()
		tab.Inject("axe-core", axe)
		for _, as := range []struct {
			name, scheme string
			kind         webtest.Kind
		}{{"phone, dark", "dark", webtest.Phone}, {"desktop, light", "light", webtest.Desktop}} {
			tab.Theme(as.scheme)
			tab.Size(as.kind)
			for _, found := range webtest.Eval[[]string](tab, audit) {
				t.Errorf("%s, %s: %s", what, as.name, found)
			}
		}
	}
	for _, path := range pages {
		tab.Go(r.srv.URL + path)
		check(path)
	}
	tab.Go(r.srv.URL + "/t/demo/approval/1")
	tab.Press("approve")
	tab.Shows("Tap again to approve")
	check("the second tap")
	tab.Press("reject")
	asks(tab)
	check("the dialog that asks")

	r.f.change(func(q *view.Request) {
		*q = view.Request{
			ID: 1, Kind: view.NeedPlan, State: "pending", Member: "ann", Subject: "a plan", Asked: q.Asked, Plan: "# Plan\n1. rename\n2. delete",
			Comments: []view.Comment{{Name: "1", State: "draft", First: 2, Last: 2, Text: "why?"}},
		}
	})
	tab.Go(r.srv.URL + "/t/demo/approval/1")
	tab.Shows("draft 1 line 2")
	check("a plan with a comment")
	r.f.mu.Lock()
	r.f.said = []view.Comment{
		{Name: "1.1", State: "handled", Path: "x", First: 1, Last: 1, Text: "why?", Answer: "because"}, {Name: "1.2", State: "open", Path: "x", Text: "a test"},
		{Name: "2.1", State: "draft", Path: "x", First: 2, Last: 2, Text: "and this?"},
	}
	r.f.ready = "ann would be merged into main"
	r.f.mu.Unlock()
	tab.Go(r.srv.URL + "/t/demo/changes/ann")
	tab.Shows("draft 2.1 line 2")
	check("changes with comments")
	tab.Go(r.srv.URL + "/t/demo/changes")
	tab.Press("merge the ready branches")
	tab.Until("what would be merged", `document.getElementById('would').open`)
	check("the dialog that merges")
	tab.Go(r.srv.URL + "/t/demo/nothing")
	check("an error")
	tab.Fine(r.srv.URL)

	day := viewtest.Read(t, filepath.Join("..", ".."))
	graph, err := view.NewGraph(day.Before.Tasks, day.Depends, day.Now)
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]page.Doc{
		"graph": {Kind: "graph", Body: map[string]any{"SVG": graph.SVG(day.Now), "Why": ""}}, "request": {Kind: "approval", ID: "1", Body: day.Requests[0]},
	}
	docs["diff"] = page.Doc{Kind: "changes", ID: "ann", Body: page.NewDiff(view.Changes{Member: "ann", Patch: report(t).Diffs[0].Text})}
	for _, kind := range []string{"needs", "members", "tasks", "board"} {
		docs[kind] = page.Doc{Kind: kind}
	}
	docs["teams"] = page.Doc{Kind: "teams", Teams: []view.Glance{view.GlanceOf(day.Before), {Team: "other", Unread: evil}}}
	docs["no teams"] = page.Doc{Kind: "teams"}
	served := map[string]string{}
	for name, d := range docs {
		if d.Kind != "teams" {
			d.Team, d.Snapshot = day.Before.Team, day.Before
			d.Snapshot.Down = day.Now.Add(-time.Minute)
		}
		d.Now = day.Now
		served[name] = write(t, func(w *strings.Builder) error { return page.Live(w, d) })
	}
	served["report"] = write(t, func(w *strings.Builder) error { return page.Report(w, report(t), false) })
	served["timeline"] = write(t, func(w *strings.Builder) error { return page.Timeline(w, report(t).Timeline) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /app.css", asset("text/css; charset=utf-8", page.Style))
	mux.HandleFunc("GET /doc/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(served[r.PathValue("name")]))
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	for name := range served {
		tab.Go(srv.URL + "/doc/" + strings.ReplaceAll(name, " ", "%20"))
		check("of a full team: " + name)
	}
	_ = tab.Wrong() // these documents have no server behind them
}

func write(t *testing.T, f func(*strings.Builder) error) string {
	t.Helper()
	var b strings.Builder
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// report has something in each of its parts.
func report(t *testing.T) view.Report {
	t.Helper()
	day := viewtest.Read(t, filepath.Join("..", ".."))
	tasks := day.Before.Tasks
	graph, err := view.NewGraph(tasks, day.Depends, day.Now)
	if err != nil {
		t.Fatal(err)
	}
	from := day.Now.Add(-time.Hour)
	r := view.Report{
		Team: day.Before.Team, Run: 3, Open: true, Repo: "shop", Graph: &graph, Counts: day.Before.Count(), Needs: day.Before.Needs,
		Timeline: view.Timeline{Team: day.Before.Team, Run: 3, From: from, To: day.Now, History: from, Lanes: []view.Lane{{
			Member: "ann", Spans: []view.Span{{State: view.LaneWorking, From: from, To: day.Now}},
			Tasks: []view.Stint{{Task: "1", Subject: evil, Attempt: 1, From: from, To: day.Now, End: "failed"}},
		}}},
		Members:   []view.ReportMember{{Name: "ann", Agent: "claude", Restarts: 1, Ends: []string{"exit 1"}}},
		Approvals: []view.ReportApproval{{ID: 4, Kind: "plan", State: "approved", Member: "ann", Subject: evil, By: "person", Asked: from, Took: time.Minute}},
		Diffs:     []view.ReportDiff{{Member: "ann", New: []string{"y"}, Text: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n context\n-the first word of a line\n+the second word of a line\n"}},
		Queue:     []view.Depth{{At: from, Open: 1}, {At: day.Now, Done: 1}},
		Merges:    []view.Merge{{ID: 1, Member: "ann", Branch: "b", Target: "main", State: "conflict", Why: evil, Files: []string{"x"}}},
		Deeds:     []view.Event{{At: from, Text: evil}}, Messages: []view.Tally{{Name: "ann", N: 2}}, Delivered: []view.Tally{{Name: "read", N: 2}},
		Durations: view.Durations{Ended: 1, Median: time.Minute, P90: time.Minute, Longest: time.Minute},
		Cut:       []string{"a part"},
	}
	for _, x := range tasks {
		r.Tasks = append(r.Tasks, view.ReportTask{Task: x, Log: "boom\n```\n" + evil})
	}
	return r
}

package web

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/page"
	"github.com/teamctl/teamctl/internal/web/webtest"
)

// nasty are subjects with what means something to Mermaid, Markdown or HTML.
// They are short enough to be drawn in full.
var nasty = []string{
	"lint", `x"]; click n0 "y"`, `"a" 'b' ` + "`c`", `<script>alert(1)</script>`, `</div></svg><b>x</b>`, "#quot; #35; #lt;b#gt;", "&lt;b&gt; &amp; &#60;",
	"end", "subgraph one", "graph TD; a-->b", "%% comment", "%%{init: {'theme': 'x'}}%%", "---", "--> ==> -.->", "n0 --> n1", "[[x]] ((y)) {z} >w]", "[/v/] @{shape: circle}",
	"**bold** *em* _under_", "~~gone~~ __x__", "- a list", "1. one", "# heading", "> quote", "[link](https://x.example)", "![i](x.png)", "https://example.com", "www.example.com a@b.example",
	"$$x^2$$ $y$", `a\nb \ c`, "<br> <br/> line", "one\ntwo\r\nthree\ttab", "fa:fa-car :smile:", ":::done class n0 failed", "style n0 fill:#f00", "fill:#f00; stroke:#0f0;",
	"classDef done fill:#000", "click n0 callback", "linkStyle 0 stroke:red", "accTitle: x", "```", "``` mermaid ~~~", "\x1b[31mred\x07", "\u202eright to left\u200b",
	"日本語 🚀 é", "", " ", ";", "|", "||", "#", "&", "<", ">", "\x00", "{", "}", "(", ")", "[", "]", "^", "=", "+", "?", "/", "a-b_c.d,e",
}

// chain has a task for each subject, which depends on the one before it.
func chain(t *testing.T, subjects []string) (view.Graph, time.Time) {
	t.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tasks, deps := make([]view.Task, len(subjects)), map[string][]string{}
	for i, s := range subjects {
		tasks[i] = view.Task{ID: fmt.Sprint(i + 1), Subject: s, Status: "pending"}
		if i > 0 && i%3 > 0 {
			deps[tasks[i].ID] = []string{tasks[i-1].ID}
		}
	}
	g, err := view.NewGraph(tasks, deps, now)
	if err != nil {
		t.Fatal(err)
	}
	return g, now
}

// TestMermaid checks that Mermaid parses the graphs written for it, as they are and in a report, and draws each
// task with its own text and nothing of what that text means to it.
func TestMermaid(t *testing.T) {
	t.Parallel()
	mermaid := webtest.Module(t, "TEAMCTL_TEST_MERMAID", "mermaid/dist/mermaid.min.js")
	tab := webtest.Start(t).Tab(t, webtest.Desktop)
	tab.Go("about:blank")
	tab.Inject("mermaid", mermaid)
	g, now := chain(t, nasty)
	report := write(t, func(w *strings.Builder) error {
		return page.Report(w, view.Report{Team: "demo", Graph: &g, Timeline: view.Timeline{From: now, To: now}}, true)
	})
	_, fenced, _ := strings.Cut(report, "```mermaid\n")
	fenced, _, _ = strings.Cut(fenced, "\n```")
	if fenced += "\n"; fenced != g.Mermaid(now) {
		t.Errorf("in the report:\n%s", fenced)
	}
	for name, subjects := range map[string][]string{"nasty": nasty, "none": nil} {
		g, now := chain(t, subjects)
		text, err := json.Marshal(g.Mermaid(now))
		if err != nil {
			t.Fatal(err)
		}
		if kind := webtest.Eval[string](tab, `mermaid.parse(`+string(text)+`).then((r) => r.diagramType, (e) => String(e))`); !strings.HasPrefix(kind, "flowchart") {
			t.Errorf("%s: %s\n%s", name, kind, g.Mermaid(now))
		}
		type node struct {
			Text   string
			Marked []string // elements that are no text
		}
		drawn := webtest.Eval[map[string]node](tab, `mermaid.render('drawing', `+string(text)+`).then(({svg}) => {
			document.body.innerHTML = svg;
			return Object.fromEntries([...document.querySelectorAll('g.node')].map((n) => [n.id.match(/n[0-9]+/)[0], {
				Text: n.textContent, Marked: [...n.querySelectorAll('a,b,br,code,del,em,i,img,li,math,ol,pre,script,strong,ul')].map((e) => e.outerHTML)}])) })`)
		if len(drawn) != len(subjects) {
			t.Errorf("%s: %d of %d tasks are drawn", name, len(drawn), len(subjects))
		}
		for i, n := range g.Nodes {
			got := drawn[fmt.Sprintf("n%d", i)]
			want := strings.Join(strings.Fields(n.Sign()+" "+n.ID+" "+view.Clean(n.Subject)), " ")
			if text := strings.Join(strings.Fields(got.Text), " "); text != want || len(got.Marked) > 0 {
				t.Errorf("%q is drawn as %q %q", want, text, got.Marked)
			}
		}
	}
	for _, w := range tab.Wrong() {
		t.Error(w)
	}
}

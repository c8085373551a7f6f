package page

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// TestNewDiff: a comment stands below its line, one whose line has changed above all, and one on a
// file that has no changes any more is not lost.
func TestNewDiff(t *testing.T) {
	t.Parallel()
	d := NewDiff(view.Changes{
		Member: "ann", Patch: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n",
		Comments: []view.Comment{
			{Name: "1.1", State: "open", Path: "x", First: 2, Last: 3},
			{Name: "1.2", State: "handled", Path: "x", First: 2, Last: 2, Old: true},
			{Name: "1.3", State: "open", Path: "x", First: 1, Last: 1, Changed: true},
			{Name: "1.4", State: "draft", Path: "gone"},
		},
	})
	got := map[string]string{}
	for _, f := range d.Files {
		for _, c := range f.Above {
			got[c.Name] = f.Path + " above, " + where(c)
		}
		for _, r := range f.Rows {
			for _, c := range r.Comments {
				got[c.Name] = f.Path + " " + string(rune(r.Kind)) + r.Text + ", " + where(c)
			}
		}
	}
	want := map[string]string{"1.1": "x +d, lines 2 to 3", "1.2": "x -b, line 2", "1.3": "x above, changed since, was line 1", "1.4": "gone above, the file"}
	for name, where := range want {
		if got[name] != where {
			t.Errorf("%s is %q, not %q", name, got[name], where)
		}
	}
	if d.Round() != "round 1: 2 open, 1 handled" {
		t.Error(d.Round())
	}
}

// TestChangedWords: the page and the report mark the changed words of lines that replace each other, and
// these stay text.
func TestChangedWords(t *testing.T) {
	t.Parallel()
	const patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n-a <b>old</b>\x1b[2J word\n-func main() {}\n+a <b>new</b> word\n \n"
	var page, report strings.Builder
	if err := Live(&page, Doc{Kind: "changes", ID: "ann", Team: "demo", Body: NewDiff(view.Changes{Member: "ann", Patch: patch}), Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	r := sampleReport(t, "x")
	r.Diffs = []view.ReportDiff{{Member: "ann", Text: patch}}
	if err := Report(&report, r, false); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"page": page.String(), "report": report.String()} {
		for _, want := range []string{"-a &lt;b&gt;<del>old</del>&lt;/b&gt; word<", "&#43;a &lt;b&gt;<ins>new</ins>&lt;/b&gt; word<", "-func main() {}"} {
			if !strings.Contains(got, want) {
				t.Errorf("the %s lacks %q:\n%s", name, want, got)
			}
		}
		if strings.Count(got, "<ins>") != 1 || strings.Count(got, "<del>") != 1 {
			t.Errorf("the %s marks something else:\n%s", name, got)
		}
	}
	if !strings.Contains(report.String(), `<span class="del">--- a/x</span>`) {
		t.Error("the heading of a file in the report has changed")
	}
}

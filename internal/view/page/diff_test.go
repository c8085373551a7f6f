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

// TestAcross checks that a file that others change leads to the file as all of them have it, in which the
// lines are marked that more than one touches.
func TestAcross(t *testing.T) {
	t.Parallel()
	patch := func(line string) string {
		return "diff --git a/a&b b/a&b\nindex 1111111..2222222 100644\n--- a/a&b\n+++ b/a&b\n@@ -1,3 +1,3 @@\n one\n-two\n+" + line + "\n three\n@@ -20,2 +20,3 @@\n more\n+" + line + " <b>\n end\n"
	}
	ann := view.Changes{Member: "ann", Against: "main", Patch: patch("ann"), Also: map[string][]string{"a&b": {"bob", "cart"}}}
	bob := view.Changes{Member: "bob", Against: "main", Patch: strings.ReplaceAll(patch("bob"), "@@ -20,2 +20,3 @@\n more", "@@ -30,2 +30,3 @@\n other")}
	text := liveText(t, Doc{Kind: "changes", ID: "ann", Team: "demo", Body: NewDiff(ann)})
	if !strings.Contains(text, `<a href="/t/demo/across/ann?file=a%26b">a&amp;b as all members change it</a>`) {
		t.Errorf("no link:\n%s", text)
	}
	ann.Also = nil
	if text := liveText(t, Doc{Kind: "changes", ID: "ann", Team: "demo", Body: NewDiff(ann)}); strings.Contains(text, "across") {
		t.Errorf("a link on a file of one member:\n%s", text)
	}
	list := view.AcrossMembers("a&b", []view.Changes{ann, bob, {Member: "cart", Why: "it <has> exited"}})
	text = liveText(t, Doc{Kind: "across", ID: "ann", Team: "demo", Body: NewAcross("a&b", "ann", list)})
	for _, want := range []string{
		"<h1>a&amp;b as all members change it</h1>", `<a href="/t/demo/changes/bob">bob</a>`, "<b>! same lines as ann</b>", "<b>! same lines as bob</b>", "it &lt;has&gt; exited",
		`<span class="ln">! 2</span><code>-`, `<span class="ln">! 2</span><code>&#43;`, `<span class="ln">21</span><code>&#43;ann &lt;b&gt;`, `<span class="ln">31</span><code>&#43;bob &lt;b&gt;`, `aria-current="page">changes`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

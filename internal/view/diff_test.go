package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const patch = `diff --git a/cart.go b/cart.go
index 1..2 100644
--- a/cart.go
+++ b/cart.go
@@ -40,3 +40,3 @@ func (c *Cart) Total() Money {
 func (c *Cart) Total() Money {
-	return c.sum
+	return c.sum.Round(2)
 }
\ No newline at end of file
diff --git "a/t\303\244g.txt" "b/t\303\244g.txt"
new file mode 100644
--- /dev/null
+++ "b/t\303\244g.txt"
@@ -0,0 +1,2 @@
+--- a/not-a-file
+++ b/neither
diff --git a/old name b/new name
similarity index 100%
rename from old name
rename to new name
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/pic.png b/pic.png
index 1..2 100644
Binary files a/pic.png and b/pic.png differ
diff --git a/run b/run
old mode 100644
new mode 100755
`

func TestParseDiff(t *testing.T) {
	t.Parallel()
	want := []FileDiff{
		{Path: "cart.go", State: "changed", Added: 1, Removed: 1, Old: "1", Lines: []DiffLine{
			{Kind: Hunk, Old: 40, New: 40, Text: "@@ -40,3 +40,3 @@ func (c *Cart) Total() Money {"},
			{Kind: Context, Old: 40, New: 40, Text: "func (c *Cart) Total() Money {"},
			{Kind: Removed, Old: 41, Text: "\treturn c.sum"},
			{Kind: Added, New: 41, Text: "\treturn c.sum.Round(2)"},
			{Kind: Context, Old: 42, New: 42, Text: "}"},
			{Kind: NoEnd, Text: "No newline at end of file"},
		}},
		{Path: "täg.txt", State: "new", Added: 2, Lines: []DiffLine{
			{Kind: Hunk, New: 1, Text: "@@ -0,0 +1,2 @@"},
			{Kind: Added, New: 1, Text: "--- a/not-a-file"},
			{Kind: Added, New: 2, Text: "++ b/neither"},
		}},
		{Path: "new name", From: "old name", State: "renamed"},
		{Path: "gone", State: "deleted", Removed: 1, Lines: []DiffLine{{Kind: Hunk, Old: 1, Text: "@@ -1 +0,0 @@"}, {Kind: Removed, Old: 1, Text: "x"}}},
		{Path: "pic.png", State: "binary", Old: "1"},
		{Path: "run", State: "mode"},
	}
	if diff := cmp.Diff(want, ParseDiff(patch)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzParseDiff: whatever an agent writes, no line is lost from a hunk or made up.
func FuzzParseDiff(f *testing.F) {
	f.Add(patch)
	f.Add("diff --git \n@@ -1,99999999999 +1 @@\n+")
	f.Add("diff --git a/x b/x\n@@ -9223372036854775807,2 +1,2 @@\n-a\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, file := range ParseDiff(s) {
			added, removed := 0, 0
			for _, l := range file.Lines {
				if strings.Contains(l.Text, "\n") {
					t.Errorf("a line of two: %q", l.Text)
				}
				switch l.Kind {
				case Added:
					added++
				case Removed:
					removed++
				case Context, Hunk, NoEnd:
				}
			}
			if added != file.Added || removed != file.Removed {
				t.Errorf("%s says +%d -%d and has +%d -%d", file.Path, file.Added, file.Removed, added, removed)
			}
		}
	})
}

package look

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/view"
)

// TestNewFiles checks that files that git does not track are new files with their content, as git would
// show them, whatever is in them and in their names.
func TestNewFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := func(n int, text string) view.DiffLine { return view.DiffLine{Kind: view.Added, New: n, Text: text} }
	hunk := func(text string) view.DiffLine { return view.DiffLine{Kind: view.Hunk, New: 1, Text: text} }
	for _, tt := range []struct {
		name, content string
		want          view.FileDiff
	}{
		{"plain.go", "a\nb\n", view.FileDiff{State: "new", Added: 2, Lines: []view.DiffLine{hunk("@@ -0,0 +1,2 @@"), line(1, "a"), line(2, "b")}}},
		{"no end", "a", view.FileDiff{State: "new", Added: 1, Lines: []view.DiffLine{hunk("@@ -0,0 +1,1 @@"), line(1, "a"), {Kind: view.NoEnd, Text: "No newline at end of file"}}}},
		{"empty", "", view.FileDiff{State: "new"}},
		{"image.png", "\x89PNG\x00\x01", view.FileDiff{State: "binary"}},
		{"latin1.txt", "caf\xe9\n", view.FileDiff{State: "new", Added: 1, Lines: []view.DiffLine{hunk("@@ -0,0 +1,1 @@"), line(1, "caf\uFFFD")}}},
		{"a \"b\"\t\\c", "x\n", view.FileDiff{State: "new", Added: 1, Lines: []view.DiffLine{hunk("@@ -0,0 +1,1 @@"), line(1, "x")}}},
	} {
		if err := os.WriteFile(filepath.Join(dir, tt.name), []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		patch, ok := newFile(dir, tt.name)
		if !ok {
			t.Errorf("%q has no patch", tt.name)
			continue
		}
		tt.want.Path = tt.name
		if diff := cmp.Diff([]view.FileDiff{tt.want}, view.ParseDiff(patch)); diff != "" {
			t.Errorf("%q (-want +got):\n%s\n%s", tt.name, diff, patch)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), []byte(strings.Repeat("x", newFileMost+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": "plain.go", "away": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		patch, ok := newFile(dir, link)
		want := view.FileDiff{Path: link, State: "new", Added: 1, Lines: []view.DiffLine{hunk("@@ -0,0 +1,1 @@"), line(1, target), {Kind: view.NoEnd, Text: "No newline at end of file"}}}
		if diff := cmp.Diff([]view.FileDiff{want}, view.ParseDiff(patch)); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", link, diff)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"large", "pipe", "missing", "../" + filepath.Base(dir) + "/plain.go"} {
		if _, ok := newFile(dir, name); ok {
			t.Errorf("%s has a patch", name)
		}
	}
}

package view

import (
	"strings"
	"testing"
)

// TestCrossed checks which lines two changes of a file share, on patches of git.
func TestCrossed(t *testing.T) {
	t.Parallel()
	patch := func(head string, lines ...string) FileDiff {
		return ParseDiff("diff --git a/f b/f\n" + head + "--- a/f\n+++ b/f\n" + strings.Join(lines, "\n") + "\n")[0]
	}
	const one, two = "index 1111111..2222222 100644\n", "index 1111111..3333333 100644\n"
	replaces5 := []string{"@@ -4,3 +4,3 @@", " 4", "-5", "+five", " 6"}
	for _, c := range []struct {
		name  string
		other FileDiff
		want  string // a mark for each line of the hunk that replaces line 5
		known bool
	}{
		{"the same line", patch(two, replaces5...), "..xx.", true},
		{"the line after", patch(two, "@@ -5,3 +5,3 @@", " 5", "-6", "+six", " 7"), "..xx.", true},
		{"two lines after", patch(two, "@@ -6,3 +6,3 @@", " 6", "-7", "+seven", " 8"), ".....", true},
		{"a line before it", patch(two, "@@ -3,2 +3,3 @@", " 3", "+3a", " 4"), ".....", true},
		{"directly before it", patch(two, "@@ -4,2 +4,3 @@", " 4", "+4a", " 5"), "..xx.", true},
		{"directly after it", patch(two, "@@ -5,2 +5,3 @@", " 5", "+5a", " 6"), "..xx.", true},
		{"all of it", patch("deleted file mode 100644\n"+two, "@@ -1,9 +0,0 @@", "-1", "-2", "-3", "-4", "-5", "-6", "-7", "-8", "-9"), "..xx.", true},
		{"no line", patch("old mode 100644\nnew mode 100755\n" + two), ".....", true},
		{"another content", patch("index 9999999..3333333 100644\n", replaces5...), "", false},
		{"an unknown content", patch("", replaces5...), "", false},
		{"a new file", patch("new file mode 100644\nindex 0000000..3333333\n", "@@ -0,0 +1 @@", "+x"), "", false},
	} {
		lines, known := patch(one, replaces5...).Crossed(c.other)
		got := ""
		for _, l := range lines {
			got += map[bool]string{true: "x", false: "."}[l]
		}
		if got != c.want || known != c.known {
			t.Errorf("%s: %q %t, want %q %t", c.name, got, known, c.want, c.known)
		}
	}
	added := patch("new file mode 100644\n", "@@ -0,0 +1,2 @@", "+a", "+b")
	if lines, known := added.Crossed(patch("new file mode 100644\nindex 0000000..3333333\n", "@@ -0,0 +1 @@", "+x")); !known || len(lines) != 3 || lines[0] || !lines[1] || !lines[2] {
		t.Errorf("two new files: %v %t", lines, known)
	}
}

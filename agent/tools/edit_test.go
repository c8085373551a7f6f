package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reference finds the range that an edit may replace by trying every range of the text. A range
// matches if it equals old. If none does, whole lines match that differ from old in line ends and
// trailing blanks only. Exactly one range must match.
func reference(content, old string) (from, to int, ok bool) {
	var found [][2]int
	for i := range len(content) - len(old) + 1 {
		if content[i:i+len(old)] == old {
			found = append(found, [2]int{i, i + len(old)})
		}
	}
	if len(found) == 0 && strings.Trim(old, " \t\r\n") != "" {
		plain := func(s string) string {
			var out strings.Builder
			for l := range strings.Lines(s) {
				out.WriteString(strings.TrimRight(l, " \t\r\n"))
				if strings.HasSuffix(l, "\n") {
					out.WriteByte('\n')
				}
			}
			return out.String()
		}
		body := strings.TrimPrefix(content, "\ufeff")
		skip := len(content) - len(body)
		for i := range len(body) + 1 {
			if i > 0 && body[i-1] != '\n' {
				continue
			}
			for j := i; j <= len(body); j++ {
				ends := j == len(body) || j > 0 && body[j-1] == '\n' && strings.HasSuffix(old, "\n") ||
					!strings.HasSuffix(old, "\n") && strings.HasPrefix(strings.TrimPrefix(body[j:], "\r"), "\n") && !strings.HasSuffix(body[:j], "\r")
				if ends && j > i && plain(body[i:j]) == plain(old) {
					found = append(found, [2]int{i + skip, j + skip})
				}
			}
		}
	}
	if len(found) != 1 {
		return 0, 0, false
	}
	return found[0][0], found[0][1], true
}

// FuzzEdit checks that an edit replaces the one matching range or nothing.
func FuzzEdit(f *testing.F) {
	for _, s := range [][3]string{
		{"a\nb\nc\n", "b", "B"}, {"a\r\nb\r\n", "a\nb\n", "x\ny\n"}, {"\ufeffa \nb", "a\nb", "c"}, {"}\n}\n}\n", "}\n}\n", ""},
		{"a\n\nb", " ", "x"}, {"aaa", "aa", "b"}, {"x \n", "x\n", "y"}, {"a\r\n\r\nb\r\n", "a\n\nb", "q"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, content, old, fresh string) {
		if len(content) > 300 || len(old) > 100 || old == "" || old == fresh || strings.Contains(strings.ReplaceAll(content+old, "\r\n", ""), "\r") {
			return // short enough to try every range; a lone CR is not a line end
		}
		from, to, ok := reference(content, old)
		got, err := replace(content, editPart{Old: old, New: fresh})
		if ok != (err == nil) {
			t.Fatalf("%q in %q: %v, the reference has %v", old, content, err, ok)
		}
		if err != nil {
			return
		}
		want := fresh
		if !strings.Contains(old, "\r\n") {
			want = withEnds(fresh, content)
		}
		if want = content[:from] + want + content[to:]; got != want {
			t.Fatalf("%q in %q: %q, want %q", old, content, got, want)
		}
	})
}

// TestEditLarge checks that an edit of a large file changes one place, and keeps the mode and the
// missing last line end.
func TestEditLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := strings.Repeat("some line of a large file\r\n", 200_000)
	r.file("f", before+"here\r\n"+before+"no end")
	if err := os.Chmod(filepath.Join(r.dir, "f"), 0o751); err != nil {
		t.Fatal(err)
	}
	r.read("f")
	r.wants(r.edit("f", "here", "there\nand there"), false, "f +2 -1")
	if r.content("f") != before+"there\r\nand there\r\n"+before+"no end" {
		t.Error("another place was changed")
	}
	if info, err := os.Stat(filepath.Join(r.dir, "f")); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestEditConcurrently checks that of two sessions that have read a file only the first can write
// it.
func TestEditConcurrently(t *testing.T) {
	t.Parallel()
	one := newRig(t)
	other := newRig(t, func(c *Config) { c.Dir = one.dir })
	one.file("f", "a\n")
	one.read("f")
	other.read("f")
	one.wants(one.edit("f", "a", "b"), false)
	other.wants(other.edit("f", "a", "c"), true, "stale: f has changed")
	other.wants(other.call("write", map[string]any{"path": "f", "content": "c"}), true, "stale")
}

package team

import (
	"strings"
	"testing"
)

func TestGlobMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		glob, path string
		want       bool
	}{
		{"a.go", "a.go", true}, {"a.go", "b/a.go", false}, {"**/a.go", "b/c/a.go", true}, {"**/a.go", "a.go", true},
		{"*.go", "a.go", true}, {"*.go", "x/a.go", false}, {"x/", "x/y/z", true}, {"x/**", "x/y", true}, {"x/**/z", "x/z", true},
		{"x/**/z", "x/1/2/z", true}, {"x/*/z", "x/1/2/z", false}, {"?.md", "é.md", true}, {"[a-c].md", "b.md", true},
		{"[!a-c].md", "b.md", false}, {"[]x].md", "].md", true}, {"**", "any/thing", true}, {"a*b*c", "aXbYc", true}, {"a*b*c", "aXbY", false},
	} {
		if got := GlobMatch(c.glob, c.path); got != c.want || !ValidGlob(c.glob) {
			t.Errorf("%s matches %s: %v", c.glob, c.path, got)
		}
	}
	for _, bad := range []string{"", "/abs", "a//b", "../x", "./x", "a[b", "x\n"} {
		if ValidGlob(bad) {
			t.Errorf("%q is valid", bad)
		}
	}
}

func TestGlobsMeet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a/**", "a/b.go", true}, {"a/**", "b/**", false}, {"*.go", "main.*", true}, {"*.go", "*.md", false},
		{"**/x", "a/**", true}, {"a/*/c", "a/b/*", true}, {"a/*/c", "a/b", false}, {"[ab]x", "?x", true}, {"[ab]x", "cx", false}, {"**", "x", true},
	} {
		if GlobsMeet(c.a, c.b) != c.want || GlobsMeet(c.b, c.a) != c.want {
			t.Errorf("%s and %s: want %v", c.a, c.b, c.want)
		}
	}
	// However many stars: this would take for ever if every way were tried.
	if stars := strings.Repeat("*a", 200); GlobMatch(stars+"b", strings.Repeat("a", 400)) || GlobsMeet(stars+"b", stars+"c") {
		t.Error("these do not meet")
	}
}

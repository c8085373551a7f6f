package team

import (
	"regexp"
	"strings"
	"testing"
)

// TestSpelled checks ids of specs, names of MCP servers and addresses against the expressions that define them.
func TestSpelled(t *testing.T) {
	t.Parallel()
	words := []string{"", "a", "Z", "9", "-a", "_a", "a-b_c", "a-B", "a b", "ä", "a\n", "a.b", strings.Repeat("a", 32), strings.Repeat("a", 33), strings.Repeat("a", 64), strings.Repeat("a", 65),
		"http://", "http:///x", "http://a", "https://a/b c", "https://a/b?c", "https://a b", "ftp://a", "http://a\n", "https://\t", "http://[::1]:80/x"}
	for _, c := range []struct {
		what, pattern string
		is            func(string) bool
	}{
		{"id", `^[a-z0-9][a-z0-9_-]{0,63}$`, specID},
		{"server", `^[A-Za-z0-9][A-Za-z0-9-]{0,31}$`, func(s string) bool { return MCPServer{Command: []string{"x"}}.Validate(s) == nil }},
		{"address", `^https?://[^/\s]+(/\S*)?$`, webAddress},
	} {
		re := regexp.MustCompile(c.pattern)
		for _, w := range words {
			if got, want := c.is(w), re.MatchString(w); got != want {
				t.Errorf("%s %q: %v, want %v", c.what, w, got, want)
			}
		}
	}
}

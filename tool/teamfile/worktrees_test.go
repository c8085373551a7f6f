package teamfile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWorktrees(t *testing.T) {
	t.Parallel()
	f, err := Parse("t.yaml", []byte("team: demo\nworktrees:\n  root: ../trees\n  copy: [a, b]\n  link: node_modules\n  setup:\n    - npm ci\n    - make\n  teardown: docker compose down\n  timeout: 90s\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Worktrees{Root: "../trees", Furnishing: Furnishing{Copy: []string{"a", "b"}, Link: []string{"node_modules"}, Setup: []string{"npm ci", "make"},
		Teardown: []string{"docker compose down"}, Timeout: 90 * time.Second}}
	if d := cmp.Diff(want, f.Worktrees); d != "" {
		t.Error(d)
	}
	for text, why := range map[string]string{
		"timeout: soon":   `timeout "soon" is not a duration`,
		"timeout: -1s":    `timeout "-1s" is not a duration`,
		"setup: [[x]]":    "an entry of setup",
		"setupp: make":    "setupp",
		"copy: {a: b}":    "copy",
		"link: [1.5, {}]": "link",
	} {
		_, err := Parse("t.yaml", []byte("team: demo\nworktrees: {"+text+"}\n"))
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What worktrees.repos says is of a repository that there is, wherever repos stands.
func TestWorktreesOfRepos(t *testing.T) {
	t.Parallel()
	f, err := Parse("t.yaml", []byte("team: demo\nworktrees:\n  setup: a\n  repos:\n    api: {setup: [b], timeout: 1m}\n    web: {}\nrepos: {api: x, web: y}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Worktrees{Furnishing: Furnishing{Setup: []string{"a"}},
		Repos: map[string]Furnishing{"api": {Setup: []string{"b"}, Timeout: time.Minute}, "web": {}}}
	if d := cmp.Diff(want, f.Worktrees); d != "" {
		t.Error(d)
	}
	for text, why := range map[string]string{
		"{apo: {setup: b}}":                  `worktrees.repos names no repository: "apo" (did you mean api?)`,
		"{api: {root: b}}":                   `unknown key "root"`,
		"{api: b}":                           "repository api must be a mapping",
		"{api: {setup: b}, api: {setup: b}}": "given twice",
		"{api: {timeout: soon}}":             `timeout "soon"`,
	} {
		_, err := Parse("t.yaml", []byte("team: demo\nrepos: {api: x}\nworktrees: {repos: "+text+"}\n"))
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

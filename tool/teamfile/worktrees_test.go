package teamfile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWorktrees(t *testing.T) {
	f, err := Parse("t.yaml", []byte("team: demo\nworktrees:\n  root: ../trees\n  copy: [a, b]\n  link: node_modules\n  setup:\n    - npm ci\n    - make\n  teardown: docker compose down\n  timeout: 90s\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Worktrees{Root: "../trees", Copy: []string{"a", "b"}, Link: []string{"node_modules"}, Setup: []string{"npm ci", "make"},
		Teardown: []string{"docker compose down"}, Timeout: 90 * time.Second}
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

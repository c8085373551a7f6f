package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestOverlapToldWhileBusy: two plain commands that never come to rest change the same files; the
// lead and both are warned then, once, also about a file in a new directory.
func TestOverlapToldWhileBusy(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("directory trees are watched on Linux only")
	}
	r := newRig(t)
	r.policy.Edits = 2 * time.Second // however long a look takes here
	root := filepath.Join(t.TempDir(), "repo")
	mkdir(t, filepath.Join(root, "src", "deep"))
	file := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file(filepath.Join(root, "src", "deep", "a.go"), "package deep\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	if _, err := r.led.UpdateTeam(t.Context(), ledger.TeamPatch{Repo: &root}); err != nil {
		t.Fatal(err)
	}
	s := r.supervisor()
	trees := map[string]string{}
	for _, name := range []string{"ann", "bob"} {
		out, err := s.Spawn(t.Context(), team.SpawnRequest{Name: name, Spec: team.MemberSpec{
			Agent: "command", Command: []string{"agent"}, Restart: team.RestartNever, WorktreeMode: "own", Cwd: root,
		}})
		if err != nil {
			t.Fatal(err)
		}
		trees[name] = out.Member.Worktree
	}
	// told are the texts of the mail to a recipient about overlaps.
	told := func(to string) []string {
		list, err := r.led.Messages(t.Context(), ledger.MessageFilter{Recipient: to})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, m := range list {
			if strings.Contains(m.Text, "have both changed") {
				texts = append(texts, m.Text)
			}
		}
		return texts
	}
	wait := func(path string, n int) {
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		deadline := time.After(5 * time.Minute)
		for _, to := range []string{team.LeadName, "ann", "bob"} {
			for {
				texts := told(to)
				if len(texts) == n && slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, path) }) {
					break
				}
				if len(texts) > n {
					t.Fatalf("%s was told %d times: %q", to, len(texts), texts)
				}
				select {
				case <-tick.C:
				case <-deadline:
					t.Fatalf("%s was not told of %s: %q", to, path, texts)
				}
			}
		}
	}
	file(filepath.Join(trees["ann"], "src", "deep", "a.go"), "package deep // ann\n")
	file(filepath.Join(trees["bob"], "src", "deep", "a.go"), "package deep // bob\n")
	wait("src/deep/a.go", 1)

	file(filepath.Join(trees["ann"], "new", "below", "b.go"), "package below\n")
	file(filepath.Join(trees["bob"], "new", "below", "b.go"), "package below // bob\n")
	wait("new/below/b.go", 2)

	file(filepath.Join(trees["bob"], "src", "deep", "a.go"), "package deep // bob again\n")
	file(filepath.Join(trees["bob"], "src", "deep", "c.go"), "package deep\n")
	file(filepath.Join(trees["ann"], "src", "deep", "c.go"), "package deep\n")
	wait("src/deep/c.go", 3)
}

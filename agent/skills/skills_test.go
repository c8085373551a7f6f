package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func skill(name, description string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n\nHow to %s.\n", name, description, name)
}

func TestFind(t *testing.T) {
	t.Parallel()
	home, repo := t.TempDir(), t.TempDir()
	put(t, home+"/workspace/skills/review/SKILL.md", skill("review", "Review a change"))
	put(t, repo+"/.agents/skills/review/SKILL.md", skill("Review", "the repository's own"))
	put(t, repo+"/.agents/skills/release/SKILL.md", strings.ReplaceAll(skill("release", ">\n  Make a\n  release"), "\n", "\r\n"))
	put(t, repo+"/.teamctl/skills/docs/SKILL.md", skill("docs", "Write docs"))
	put(t, repo+"/.agents/skills/README.md", "not a skill")
	for name, text := range map[string]string{
		"none":  "no front matter",
		"open":  "---\nname: x\n",
		"names": "---\ndescription: y\n---\n",
		"yaml":  "---\nname: [\n---\n",
		"bad":   skill("a/b", "y"),
		"big":   skill("big", "y") + strings.Repeat("x", maxFile),
	} {
		put(t, repo+"/.agents/skills/"+name+"/SKILL.md", text)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	put(t, outside, skill("stolen", "y"))
	for name, to := range map[string]string{"link": outside} {
		if err := os.MkdirAll(repo+"/.agents/skills/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, repo+"/.agents/skills/"+name+"/SKILL.md"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(repo+"/.agents/skills/fifo", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(repo+"/.agents/skills/fifo/SKILL.md", 0o600); err != nil {
		t.Fatal(err)
	}
	found, broken := Find(home, repo)
	var names []string
	for _, s := range found {
		names = append(names, s.Name+": "+s.Description)
	}
	if got, want := strings.Join(names, "; "), "docs: Write docs; release: Make a release; review: Review a change"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(broken) != 8 {
		t.Errorf("%d broken: %v", len(broken), broken)
	}
	text, dir, err := Load(found[1])
	if err != nil || text != "How to release.\n" || dir != filepath.Join(repo, ".agents/skills/release") {
		t.Errorf("%q, %s, %v", text, dir, err)
	}
	if got := Allowed(found, team.Filter{Allow: []string{"re*"}, Deny: []string{"review"}}); len(got) != 1 || got[0].Name != "release" {
		t.Errorf("%v", got)
	}
	if found, broken := Find(t.TempDir(), ""); len(found)+len(broken) != 0 {
		t.Errorf("%v, %v", found, broken)
	}
}

// TestListing checks that a listing never exceeds its limit and counts the skills it omits.
func TestListing(t *testing.T) {
	t.Parallel()
	var list []Skill
	for i := range 50 {
		list = append(list, Skill{Name: fmt.Sprint("skill-", i), Description: strings.Repeat("d", 100), File: "/f"})
	}
	for _, most := range []int{0, 5, 20, 200, 1000, 2000, 10_000} {
		got := Listing(list, most, "ask")
		if len(got) > most {
			t.Errorf("%d bytes, at most %d", len(got), most)
		}
		if n := strings.Count(got, "skill-"); n < 50 && most >= 20 && !strings.Contains(got, fmt.Sprintf("- %d more: ask\n", 50-n)) {
			t.Errorf("limit %d: %d are listed, and the rest is not counted: %q", most, n, got)
		}
	}
	if got := Listing(list[:1], 1000, "ask"); got != "- skill-0: "+strings.Repeat("d", 100)+" (/f)\n" {
		t.Errorf("%q", got)
	}
}

// TestAll checks that a list of all skills leaves out none, only descriptions.
func TestAll(t *testing.T) {
	t.Parallel()
	list := []Skill{{Name: "a", Description: "about a", File: "/a"}, {Name: "b", Description: "about b", File: "/b"}}
	for most, want := range map[int]string{0: "- a (/a)\n- b (/b)\n", 35: "- a (/a)\n- b (/b)\n", 36: "- a: about a (/a)\n- b: about b (/b)\n"} {
		if got := All(list, most); got != want {
			t.Errorf("at most %d bytes: %q, want %q", most, got, want)
		}
	}
}

func TestOverlays(t *testing.T) {
	t.Parallel()
	home, repo := t.TempDir(), t.TempDir()
	put(t, home+"/workspace/SOUL.md", "soul of all")
	put(t, home+"/workspace/agents/reviewer/SOUL.md", "soul of reviewers")
	put(t, home+"/workspace/agents/reviewer/strict/SOUL.md", "soul of strict ones")
	put(t, home+"/workspace/USER.md", strings.Repeat("\u00e4", MaxOverlay))
	put(t, home+"/workspace/TOOLS.md", " \n")
	put(t, repo+"/AGENTS.md", "root")
	put(t, repo+"/CLAUDE.md", "not this one")
	put(t, repo+"/a/CLAUDE.md", "a")
	put(t, repo+"/a/b/AGENTS.md", "b")
	put(t, repo+"/c/AGENTS.md", "not here")
	outside := filepath.Join(t.TempDir(), "secret")
	put(t, outside, "key")
	if err := os.MkdirAll(repo+"/a/b/d", 0o755); err != nil {
		t.Fatal(err)
	}
	texts := func(spec, overlay, dir string) string {
		t.Helper()
		list, err := Overlays(home, spec, overlay, repo, dir)
		if err != nil {
			t.Error(err)
		}
		var out []string
		for _, o := range list {
			if o.Cut != (o.Name == "USER.md") || len(o.Text) > MaxOverlay {
				t.Errorf("%s is cut: %v, %d bytes", o.Name, o.Cut, len(o.Text))
			}
			if o.Project != (o.Name == "AGENTS.md" || o.Name == "CLAUDE.md") {
				t.Errorf("%s is the project's: %v", o.Name, o.Project)
			}
			if o.Name != "USER.md" {
				out = append(out, o.Text)
			}
		}
		return strings.Join(out, ", ")
	}
	for _, c := range [][4]string{
		{"default", "", repo, "soul of all, root"},
		{"reviewer", "", repo + "/a/b/d", "soul of reviewers, root, a, b"},
		{"reviewer", "strict", repo + "/a", "soul of strict ones, root, a"},
		{"default", "", "/elsewhere", "soul of all, root"},
	} {
		if got := texts(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%v: %s", c, got)
		}
	}
	if err := os.Symlink(outside, repo+"/a/b/d/AGENTS.md"); err != nil {
		t.Fatal(err)
	}
	list, err := Overlays(home, "default", "", repo, repo+"/a/b/d")
	if err == nil || strings.Contains(fmt.Sprint(list), "key") {
		t.Errorf("a link led out of the repository: %v, %v", list, err)
	}
}

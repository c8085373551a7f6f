package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// If several teams exist, the directory selects one: the repository, a worktree of it, or the
// team's own directory. Two teams on one repository are both named, and no others.
func TestTeamOfDirectory(t *testing.T) {
	t.Setenv(team.EnvTeam, "")
	base := t.TempDir()
	repo := func(name string) string {
		dir := filepath.Join(base, name)
		for _, args := range [][]string{{"init", "-q", "-b", "main", dir}, {"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first"}} {
			if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v: %s", args, err, out)
			}
		}
		return dir
	}
	api, web := repo("api one"), repo("wéb")
	e := &Env{Home: team.Home{Dir: filepath.Join(base, "home")}}
	create := func(in TeamCreateIn) {
		t.Helper()
		if _, err := e.TeamCreate(t.Context(), Person(), in); err != nil {
			t.Fatal(err)
		}
	}
	create(TeamCreateIn{TeamName: "a", Repo: api})
	create(TeamCreateIn{TeamName: "b", Repo: web})
	create(TeamCreateIn{TeamName: "none"})
	create(TeamCreateIn{TeamName: team.DefaultTeam})
	below := filepath.Join(api, "x", "y")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	link, tree := filepath.Join(base, "link"), filepath.Join(base, "tree")
	if err := os.Symlink(below, link); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", web, "worktree", "add", "-q", tree).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for dir, want := range map[string]string{
		api: "a", below: "a", link: "a", web: "b", tree: "b", e.Home.Team("none").Dir: "none",
		base: team.DefaultTeam, filepath.Join(base, "gone"): team.DefaultTeam, "": team.DefaultTeam,
	} {
		e.Dir = dir
		if got, err := e.Resolve(t.Context(), ""); err != nil || got != want {
			t.Errorf("in %q: %q, %v; want %q", dir, got, err, want)
		}
	}
	create(TeamCreateIn{TeamName: "also", Repo: api})
	e.Dir = below
	_, err := e.Resolve(t.Context(), "")
	denied(t, err, team.CodeInvalid, "team_ambiguous")
	if text := err.Error(); !strings.Contains(text, "2 teams on this repository: a, also") {
		t.Error(text)
	}
	if got, err := e.Resolve(t.Context(), "none"); err != nil || got != "none" {
		t.Errorf("named: %q, %v", got, err)
	}
}

package tool

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// A team that takes the name of one that is being deleted keeps its sockets.
func TestDeletedNameIsTaken(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	e := &Env{Home: team.Home{Dir: t.TempDir()}}
	l := e.Home.Team("demo")
	create := func() {
		if _, err := e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: "demo"}); err != nil {
			t.Error(err)
		}
		if err := os.MkdirAll(l.Runtime(), 0o700); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(l.RuntimeLock(), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	create()
	e.step = func(step string) {
		if step != "renamed" {
			return
		}
		e.step = nil
		if _, err := os.Lstat(l.Runtime()); err == nil {
			t.Error("the sockets are there after the name")
		}
		create()
	}
	if _, err := e.Delete(t.Context(), Person(), "demo", DeleteIn{Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(l.RuntimeLock()); err != nil {
		t.Error(err)
	}
	if teams, err := e.Keys(); err != nil || len(teams) != 1 {
		t.Errorf("teams %q, %v", teams, err)
	}
}

// A team that has its name stays, although the list of teams could not be written: another process
// may have begun to use it.
func TestCreatedWithoutRegistry(t *testing.T) {
	t.Parallel()
	e := &Env{Home: team.Home{Dir: t.TempDir()}}
	if err := os.MkdirAll(filepath.Join(e.Home.Registry(), "in", "the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: "demo"}); team.CodeOf(err) != team.CodeUnavailable {
		t.Errorf("%v", err)
	}
	if teams, err := e.Keys(); err != nil || len(teams) != 1 {
		t.Errorf("teams %q, %v", teams, err)
	}
}

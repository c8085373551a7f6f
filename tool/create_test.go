package tool

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// creator is a process that creates the team in home and stops at a step.
func creator(home, step string, more ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envCreate+"="+strings.Join(append([]string{home, step}, more...), " "))
	return cmd
}

func dirNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, d := range entries {
		names = append(names, d.Name())
	}
	return names
}

// A create that is killed at any step reserves no name and leaves no visible team, and the next
// create, which works, removes the rest.
func TestCreateKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"made", "places", "ledger", "team", "lead", "filled"} {
		t.Run(step, func(t *testing.T) {
			e := &Env{Home: team.Home{Dir: t.TempDir()}}
			cmd := creator(e.Home.Dir, step)
			out, _ := cmd.CombinedOutput()
			if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != syscall.SIGKILL {
				t.Fatalf("not killed: %s", out)
			}
			if left := dirNames(t, e.Home.TeamsDir()); len(left) != 1 || !strings.HasPrefix(left[0], creating+"demo-") {
				t.Errorf("it left %v", left)
			}
			if list, err := e.Teams(t.Context()); len(list) != 0 || err != nil {
				t.Errorf("teams %v, %v", list, err)
			}
			if c := findCheck(t, e.teamChecks(t.Context()), "leftover"); c.Hint != "teamctl doctor --repair removes it" {
				t.Errorf("%+v", c)
			}
			if _, err := e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: "demo", Description: "second"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"demo"}, dirNames(t, e.Home.TeamsDir())); diff != "" {
				t.Error(diff)
			}
			tm, err := e.Open(t.Context(), "demo")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tm.Close() }()
			if row, err := tm.Ledger.Team(t.Context()); row.Description != "second" || row.Key != "demo" || err != nil {
				t.Errorf("%+v, %v", row, err)
			}
			cfg, err := team.ReadConfig(tm.Layout.Config())
			if err != nil || len(cfg.Members) != 1 || cfg.LeadAgentID != "team-lead@demo" {
				t.Errorf("%+v, %v", cfg, err)
			}
		})
	}
}

// A team that has its name is complete, even if its create was killed before it could report that.
func TestCreateKilledWithItsName(t *testing.T) {
	t.Parallel()
	e := &Env{Home: team.Home{Dir: t.TempDir()}}
	_ = creator(e.Home.Dir, "named").Run()
	list, err := e.Teams(t.Context())
	if err != nil || len(list) != 1 || list[0].Key != "demo" || list[0].Problem != "" {
		t.Fatalf("%+v, %v", list, err)
	}
	_, err = e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: "demo"})
	denied(t, err, team.CodeConflict, "team_exists")
	if got, err := e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: "demo", Unique: true}); err != nil || got.TeamName != "demo-2" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A running create is left alone, and the first team to be complete gets the name.
func TestCreateBesideALivingOne(t *testing.T) {
	t.Parallel()
	e := &Env{Home: team.Home{Dir: t.TempDir()}}
	cmd := creator(e.Home.Dir, "lead", "wait")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceValue(func() error {
		_ = in.Close()
		return cmd.Wait()
	})
	defer func() { _ = ended() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "here\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if steps, err := e.Repair(t.Context(), Person(), ""); err != nil || len(dirNames(t, e.Home.TeamsDir())) != 1 {
		t.Errorf("a repair took it: %+v, %v", steps, err)
	}
	for _, c := range e.teamChecks(t.Context()) {
		if c.Name == "leftover" {
			t.Errorf("%+v", c)
		}
	}
	if _, err := e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: "demo", Description: "mine"}); err != nil {
		t.Fatal(err)
	}
	if err := ended(); err == nil || cmd.ProcessState.ExitCode() != 4 {
		t.Errorf("the slower one: %v", err)
	}
	if diff := cmp.Diff([]string{"demo"}, dirNames(t, e.Home.TeamsDir())); diff != "" {
		t.Error(diff)
	}
}

// Files that a person has put under a name are kept.
func TestCreateTakesNobodysDirectory(t *testing.T) {
	t.Parallel()
	e := &Env{Home: team.Home{Dir: t.TempDir()}}
	for _, path := range []string{"full/note", "empty"} {
		if err := os.MkdirAll(filepath.Join(e.Home.TeamsDir(), path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(e.Home.TeamsDir(), "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"full": false, "file": false, "empty": true} {
		_, err := e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: name})
		if ok && err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !ok {
			denied(t, err, team.CodeConflict, "team_exists")
		}
	}
	if diff := cmp.Diff([]string{"empty", "file", "full"}, dirNames(t, e.Home.TeamsDir())); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(e.Home.TeamsDir(), "full", "note")); err != nil {
		t.Error(err)
	}
}

// A repair also completes the removal that a killed delete has begun.
func TestRepairRemovesWhatIsUnfinished(t *testing.T) {
	t.Parallel()
	e := &Env{Home: team.Home{Dir: t.TempDir()}}
	for _, dir := range []string{creating + "a-1", deleted + "b-1/members", "mine"} {
		if err := os.MkdirAll(filepath.Join(e.Home.TeamsDir(), dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := e.Repair(t.Context(), Person(), "")
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, s := range steps {
		told = told || s.Step == "unfinished teams" && s.Status == RepairFixed && strings.HasPrefix(s.Detail, "2 removed")
	}
	if left := dirNames(t, e.Home.TeamsDir()); !told || !cmp.Equal(left, []string{"mine"}) {
		t.Errorf("left %v: %+v", left, steps)
	}
}

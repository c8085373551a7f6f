package worktree

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/teamctl/teamctl/team"
)

// TestEveryStepIsKilled checks that each step of the package is in the table of
// docs/worktrees.md, and that a test kills the process there.
func TestEveryStepIsKilled(t *testing.T) {
	t.Parallel()
	steps, tests := map[string]bool{}, ""
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	stepCall := regexp.MustCompile(`\.step\("([a-z-]+)"( \+)?`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			tests += string(text)
			continue
		}
		for _, m := range stepCall.FindAllStringSubmatch(string(text), -1) {
			if m[2] == "" {
				steps[m[1]] = true
				continue
			}
			for _, s := range []team.LaneState{team.LaneGating, team.LaneLanding, team.LaneLanded, team.LaneContained, team.LaneConflict, team.LaneRed} {
				steps[m[1]+string(s)] = true
			}
		}
	}
	page, err := os.ReadFile("../docs/worktrees.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	_, table, _ := strings.Cut(string(page), "| step | killed there, the next run |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(first, -1) {
			told[m[1]] = true
		}
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(steps)), slices.Sorted(maps.Keys(told))); d != "" {
		t.Errorf("the table and the steps (-code +docs):\n%s", d)
	}
	for s := range steps {
		if !strings.Contains(tests, `"`+s+`"`) {
			t.Errorf("nobody kills the process at %s", s)
		}
	}
}

// A restore is killed after saving the previous state, and a recovery is killed
// at each of its steps: nothing is lost, and the next run completes.
func TestRestoreAndRecoverKilled(t *testing.T) {
	for _, step := range []string{"restore-rescued", "unlocked", "recover-rescued"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			w := f.create("w")
			f.write("wt/w/then.txt", "then")
			ref, _, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
			f.must(err)
			f.must(os.Remove(f.path("wt/w/then.txt")))
			f.write("wt/w/now.txt", "now")
			if step != "restore-rescued" {
				// A merge whose worker was killed.
				f.member("a", map[string]string{"x.txt": "x"})
				killed(t, childJob{Repo: f.root, Do: "merge", Path: w.Path, Merge: []string{"team/a"}, KillAt: "merge-begun"})
				f.write("wt/w/a.txt", "half written")
				killed(t, childJob{Repo: f.root, Do: "recover", Path: w.Path, KillAt: step})
				_, err := f.repo.Recover(f.ctx(), w.Path, "demo", "w")
				f.must(err)
				if data, err := os.ReadFile(f.path("wt/w/a.txt")); err != nil || string(data) != "a\n" {
					t.Errorf("%q %v", data, err)
				}
				if got := contents(t, w.Path)["now.txt"]; !strings.HasSuffix(got, " now") {
					t.Errorf("untracked work is gone: %q", got)
				}
			} else {
				killed(t, childJob{Repo: f.root, Do: "restore", Path: w.Path, Ref: ref, KillAt: step})
			}
			_, err = f.repo.RestoreInto(f.ctx(), w.Path, ref, "demo", "w")
			f.must(err)
			if got := contents(t, w.Path); !strings.HasSuffix(got["then.txt"], " then") || got["now.txt"] != "" {
				t.Errorf("not restored: %v", got)
			}
			found := false
			list, err := f.repo.Saves(f.ctx(), KindRescue, "demo", "w")
			f.must(err)
			for _, s := range list {
				text, err := f.tryGit(f.root, "show", s.Ref+":now.txt")
				found = found || err == nil && text == "now"
			}
			if !found {
				t.Error("what was there before is not saved")
			}
			f.repo.sweepIndexes()
		})
	}
}

// A setup killed between its files and its commands is repeated, and keeps what
// the first one copied.
func TestSetupKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/.gitignore", ".env\nmade\n")
	f.write("main/"+IncludeFile, ".env\n")
	f.commitMain("ignore")
	f.write("main/.env", "KEY=1\n")
	w := f.create("w")
	in := SetupIn{Path: w.Path, Run: []string{"echo once >>made"}, Log: f.path("setup.log")}
	killed(t, childJob{Repo: f.root, Do: "setup", Setup: in, KillAt: "brought"})
	if done, err := f.repo.IsSetUp(w.Path); done || err != nil {
		t.Error("taken for set up", err)
	}
	f.write("wt/w/.env", "the agent's own")
	_, err := f.repo.Setup(f.ctx(), in)
	f.must(err)
	got := contents(t, w.Path)
	if !strings.HasSuffix(got[".env"], "own") || !strings.HasSuffix(got["made"], "once\n") {
		t.Errorf("%q %q", got[".env"], got["made"])
	}
}

package worktree

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
)

func TestProgressWriter(t *testing.T) {
	t.Parallel()
	var got []Progress
	w := &progressWriter{tell: func(p Progress) { got = append(got, p) }, rest: &capped{max: 1000}}
	for _, part := range []string{"Updating fi", "les:  10% (1/10)\rUpdating files: 100% (10/10), ", "done.\nfatal: it ", "broke\nFiltering content:  50% (1/2), 3.0 MiB | 1.00 MiB/s\rtail"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	w.flush()
	want := []Progress{{"Updating files", 10, 1, 10}, {"Updating files", 100, 10, 10}, {"Filtering content", 50, 1, 2}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if w.rest.String() != "fatal: it broke\ntail\n" {
		t.Errorf("kept %q", w.rest)
	}
}

// A long checkout reports git's own progress, and its failure still has git's
// message.
func TestCreateTellsProgress(t *testing.T) {
	t.Setenv("GIT_PROGRESS_DELAY", "0")
	f := newFixture(t)
	for i := range 200 {
		f.write(fmt.Sprintf("main/many/f%d", i), "x")
	}
	f.commitMain("many")
	var got []Progress
	w, err := f.repo.Create(f.ctx(), CreateIn{Path: f.path("wt/slow"), Branch: "team/slow", Progress: func(p Progress) { got = append(got, p) }})
	f.must(err)
	if len(got) == 0 || got[len(got)-1].Percent != 100 || got[len(got)-1].Total < 200 || got[0].What != "Updating files" {
		t.Errorf("told %v", got)
	}
	if out := f.git(w.Path, "status", "--porcelain"); out != "" {
		t.Errorf("not clean: %s", out)
	}
	script := `#!/bin/sh
exit 1
`
	f.write("fail", script)
	if out, err := exec.Command("chmod", "+x", f.path("fail")).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	f.write("main/.gitattributes", "*.bin filter=broken\n")
	f.write("main/a.bin", "x")
	f.commitMain("filtered")
	f.git(f.root, "config", "filter.broken.smudge", f.path("fail"))
	f.git(f.root, "config", "filter.broken.required", "true")
	_, err = f.repo.Create(f.ctx(), CreateIn{Path: f.path("wt/broken"), Branch: "team/broken", Progress: func(Progress) {}})
	if err == nil || f.exists(f.path("wt/broken")) {
		t.Errorf("a filter that fails: %v", err)
	}
}

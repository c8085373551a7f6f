package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// The logs of gates that were written last are kept.
func TestDropLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 9 {
		name := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Duration(i) * time.Minute)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	dropLogs(filepath.Join(dir, "nowhere"), 3)
	for range 2 {
		dropLogs(dir, 3)
		entries, err := os.ReadDir(dir)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || !slices.Equal(names, []string{"0", "1", "2"}) {
			t.Errorf("%q, %v", names, err)
		}
	}
}

// A lane drops old logs of gates, and keeps its own.
func TestLaneDropsLogs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.root, "branch", "release")
	f.member("a", map[string]string{"x.txt": "x"})
	f.must(os.Mkdir(f.path("logs"), 0o700))
	for i := range logsKept + 5 {
		f.must(os.WriteFile(filepath.Join(f.path("logs"), "old-"+strconv.Itoa(i)), nil, 0o600))
	}
	in := f.lane(&laneLog{}, "a")
	in.Gates = []string{"true"}
	f.must(f.repo.RunLane(f.ctx(), in))
	left, err := filepath.Glob(filepath.Join(f.path("logs"), "old-*"))
	own, _ := filepath.Glob(filepath.Join(f.path("logs"), "2*.log"))
	if err != nil || len(left) != logsKept || len(own) != 1 {
		t.Errorf("%d old logs and %q, %v", len(left), own, err)
	}
}

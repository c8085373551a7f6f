package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// savedSpace records its checkpoints, each with the files at that time.
type savedSpace struct {
	gitSpace
	mu    *sync.Mutex
	saves *[]string
}

func (s savedSpace) Checkpoint(_ context.Context, why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, err := filepath.Glob(filepath.Join(s.dir, "*.txt"))
	for _, f := range files {
		why += " " + filepath.Base(f)
	}
	*s.saves = append(*s.saves, why)
	return err
}

// TestOneCheckpointForEachTask checks that a worker takes one checkpoint after each task, before
// the next one runs, and that the checkpoint after the last one is also that of coming to rest.
func TestOneCheckpointForEachTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ws := savedSpace{r.worktree(r.repo(), "ann"), new(sync.Mutex), new([]string)}
	saves := func() []string {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		return slices.Clone(*ws.saves)
	}
	r.add(task("one", "echo 1 >1.txt"), task("two", "echo 2 >2.txt"))
	w := r.start("ann", func(e *Env) { e.Workspace, e.Dir = ws, ws.dir })
	w.idle()
	if got, want := saves(), []string{"after task 1 1.txt", "after task 2 1.txt 2.txt"}; !slices.Equal(got, want) {
		t.Errorf("after two tasks in a row: %q, want %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(ws.dir, "3.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.ended(r.add(task("three", "false"))[0].ID)
	r.until("the third checkpoint", func() bool { return len(saves()) == 3 })
	if err := w.stop(); err == nil || strings.Contains(w.out.String(), "save the state") {
		t.Errorf("ended with %v\n%s", err, w.out)
	}
	if got := saves(); len(got) != 3 || got[2] != "after task 3 1.txt 2.txt 3.txt" {
		t.Errorf("after a task that failed: %q", got)
	}
}

// TestServedSavesAtRest checks that an agent with a model takes a checkpoint each time it comes to
// rest: a supervisor leaves that to it.
func TestServedSavesAtRest(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	ws := savedSpace{gitSpace{t.TempDir()}, new(sync.Mutex), new([]string)}
	s.space = ws
	s.start(ServeIn{})
	saved := func(want ...string) {
		t.Helper()
		s.until("the checkpoints", func() bool {
			ws.mu.Lock()
			defer ws.mu.Unlock()
			return slices.Equal(*ws.saves, want)
		})
	}
	saved("idle")
	if err := os.WriteFile(filepath.Join(ws.dir, "1.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.tell("hello")
	saved("idle", "idle 1.txt")
}

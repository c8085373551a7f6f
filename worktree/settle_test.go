package worktree

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// heldCheckpoint starts a checkpoint in another process whose git waits in the
// middle of its snapshot until release is called; end waits for it to exit.
func (f *fixture) heldCheckpoint(path string) (release, end func()) {
	f.Helper()
	hello, bye := f.path("hello"), f.path("bye")
	f.must(syscall.Mkfifo(hello, 0o600))
	f.must(syscall.Mkfifo(bye, 0o600))
	f.write("main/.git/info/attributes", "held.txt filter=held\n")
	f.git(f.root, "config", "filter.held.clean", "echo >"+hello+"; read x <"+bye+"; cat")
	f.write(strings.TrimPrefix(path, f.dir+"/")+"/held.txt", "held")
	cmd := childCmd(f.T, childJob{Repo: f.root, Do: "checkpoint", Path: path})
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	f.must(cmd.Start())
	if _, err := os.ReadFile(hello); err != nil {
		f.Fatal(err)
	}
	release = func() {
		f.git(f.root, "config", "--unset", "filter.held.clean") // for later runs of git
		p, err := os.OpenFile(bye, os.O_WRONLY, 0)
		f.must(err)
		f.must(p.Close())
	}
	end = func() {
		if err := cmd.Wait(); err != nil {
			f.Errorf("the checkpoint: %v %s", err, &stderr)
		}
	}
	return release, end
}

// A restore waits for a running checkpoint of the supervisor.
func TestRestoreWaitsForCheckpoint(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.write("wt/w/work.txt", "then")
	ref, _, err := f.repo.Checkpoint(f.ctx(), w.Path, "demo", "w", "a test")
	f.must(err)
	release, end := f.heldCheckpoint(w.Path)
	done := make(chan error, 1)
	go func() {
		_, err := f.repo.RestoreInto(f.ctx(), w.Path, ref, "demo", "w")
		done <- err
	}()
	let := time.After(200 * time.Millisecond)
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
		release()
	case <-let:
		release()
		f.must(<-done)
	}
	end()
	if f.exists(f.path("wt/w/held.txt")) || f.git(w.Path, "hash-object", "work.txt") != f.git(f.root, "rev-parse", ref+":work.txt") {
		t.Error("not restored")
	}
	saves, err := f.repo.Saves(f.ctx(), KindRescue, "demo", "w")
	f.must(err)
	if len(saves) != 1 || f.git(f.root, "show", saves[0].Ref+":held.txt") != "held" {
		t.Errorf("what was there is not saved: %+v", saves)
	}
}

// A git that exits just after it was found does not count as a process working
// there.
func TestLookFor(t *testing.T) {
	t.Parallel()
	none := func([]int) []int { return nil }
	all := func(list []int) []int { return list }
	for _, c := range []struct {
		name    string
		looks   [][]int
		gits    func([]int) []int
		want    []int
		working bool
	}{
		{"nobody", [][]int{{}}, none, []int{}, false},
		{"a git", [][]int{{7}}, all, []int{7}, true},
		{"a git that ends", [][]int{{7}, {}}, none, []int{}, false},
		{"a shell", [][]int{{7, 8}, {8, 9}}, none, []int{8}, false},
	} {
		n := 0
		got, working, err := lookFor(func() ([]int, error) { n++; return c.looks[n-1], nil }, c.gits)
		if err != nil || !slices.Equal(got, c.want) || working != c.working || n != len(c.looks) {
			t.Errorf("%s: %v %v %v after %d looks", c.name, got, working, err, n)
		}
	}
}

// An unforced removal waits for any git that reads the worktree, but no longer
// than its context; a forced one does not wait.
func TestRemoveWaitsForGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hold := func(w Worktree) (release func()) {
		cmd := exec.Command("git", "-C", w.Path, "cat-file", "--batch")
		in, err := cmd.StdinPipe()
		f.must(err)
		f.must(cmd.Start())
		eventually(t, "git is there", func() bool {
			list, err := busy(f.ctx(), w.Path)
			return err == nil && len(gitsAmong(f.ctx(), list)) == 1
		})
		return func() {
			f.must(in.Close())
			f.must(cmd.Wait())
		}
	}
	w := f.create("w")
	release := hold(w)
	done := make(chan error, 1)
	go func() {
		_, err := f.repo.Remove(f.ctx(), w.Path, RemoveIn{})
		done <- err
	}()
	let := time.After(200 * time.Millisecond)
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
		release()
	case <-let:
		release()
		f.must(<-done)
	}
	if f.exists(w.Path) {
		t.Error("not removed")
	}

	x := f.create("x")
	release = hold(x)
	ctx, cancel := context.WithTimeout(f.ctx(), 50*time.Millisecond)
	defer cancel()
	_, err := f.repo.Remove(ctx, x.Path, RemoveIn{})
	wantErr(t, err, team.CodeTimeout, team.ReasonTimeout)
	res, err := f.repo.Remove(f.ctx(), x.Path, RemoveIn{Force: true, Team: "demo", Agent: "x"})
	f.must(err)
	if len(res.Busy) != 1 {
		t.Errorf("%+v", res)
	}
	release()
}

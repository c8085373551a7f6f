package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/proc"
)

// hidingGate returns a gate that starts a process in a session of its own, which ignores SIGTERM,
// and waits for it. The gate passes if a file with the pid of such a process exists. If control
// groups are available, the process has no environment either.
func hidingGate(pids string) string {
	env := ""
	if cgroup.Probe().Kill && !cgroup.Contained() {
		env = "env -i "
	}
	return `test -e ` + pids + ` && exit; ` + env + `setsid bash -c 'trap "" TERM; echo $$ >` + pids + `.new; mv ` + pids + `.new ` + pids + `; while :; do sleep 10; done' </dev/null >/dev/null 2>&1 &
until test -s ` + pids + `; do sleep 0.02; done; wait`
}

// TestMergeScratchKilled kills teamctl merge with SIGKILL at each step of its scratch worktree,
// and with SIGKILL and SIGTERM while a gate is running. What is left is removed by the next
// merge, even if that has nothing to merge or fails, by doctor --repair and by delete. A running
// merge keeps its scratch worktree.
func TestMergeScratchKilled(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "ann", "--", "sleep", "1000")
	tree := filepath.Join(r.layout.Worktrees(), "ann")
	commit := func(what string) {
		r.command("sh", "-c", `cd "$0" && git reset -q --hard main && echo "$1" >file && git add file && git commit -q -m "$1"`, tree, what)
	}
	clear := [][]string{ // followed by the exit status
		{"merge", "--resume", "0"},
		{"merge", "ann", "--into", "nowhere", "3"},
		{"merge", "ann", "--dry-run", "0"},
		{"doctor", "--repair", "0"},
	}
	next := 0
	clearNext := func(at string) {
		c := clear[next%len(clear)]
		next++
		args, want := c[:len(c)-1], c[len(c)-1]
		if out, err := r.try(append([]string{r.exe}, args...)...); strconv.Itoa(exitCode(err)) != want {
			t.Errorf("%s: %s: %v %s", at, strings.Join(args, " "), err, out)
		}
		r.noMergeScratch(at + ", then " + strings.Join(args, " "))
	}
	steps := []string{"begun", "added", "recorded", "checked-out", "scratch-made", "gated", "remove-begun", "moved", "doomed", "dropped", "deleted"}
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGKILL}
	if testing.Short() {
		steps, signals = []string{"added", "scratch-made", "moved"}, signals[:2] // each element of clear once
	}
	for _, step := range steps {
		commit(step)
		r.mergeKilledAt(step, []string{"ann"})
		clearNext(step)
	}
	pids := filepath.Join(r.dir, "pids")
	gate := func(what string) (*exec.Cmd, int) {
		commit(what)
		_ = os.Remove(pids)
		cmd := exec.Command(r.exe, "merge", "ann", "--gate", hidingGate(pids))
		cmd.Dir, cmd.Env = r.dir, r.env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := 0
		r.until("the gate runs", func() bool {
			b, _ := os.ReadFile(pids)
			pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
			return pid != 0
		})
		return cmd, pid
	}
	for i, sig := range signals {
		at := sig.String()
		cmd, pid := gate(at + strconv.Itoa(i))
		if i == 0 {
			r.livingMergeIsKept(pid)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if sig == syscall.SIGTERM {
			r.noMergeScratch(at)
		}
		if sig == syscall.SIGKILL {
			clearNext(at)
		}
		r.endsBy(pid, at)
	}
	cmd, pid := gate("the last")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	r.teamctl("delete", "--force") // the rig fails if anything is left in the repository
	r.endsBy(pid, "delete")
	r.teamctl("create", "f", "--repo", "repo")
}

// noMergeScratch checks that nothing is left of the scratch worktrees of merges.
func (r *faultRig) noMergeScratch(at string) {
	r.Helper()
	for _, dir := range []string{filepath.Join(r.layout.Dir, "merge", "scratch"), r.layout.Commands()} {
		if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
			r.Errorf("%s: left in %s: %v", at, dir, left)
		}
	}
	if list := r.command("git", "-C", "repo", "worktree", "list", "--porcelain"); strings.Contains(list, "scratch") {
		r.Errorf("%s: registered: %s", at, list)
	}
	if refs := r.command("git", "-C", "repo", "for-each-ref", "refs/teamctl/rescue"); refs != "" {
		r.Errorf("%s: rescued: %s", at, refs)
	}
}

// livingMergeIsKept runs commands that clean up while a merge is running its gate.
func (r *faultRig) livingMergeIsKept(pid int) {
	r.Helper()
	scratch := filepath.Join(r.layout.Dir, "merge", "scratch", "lane-*")
	before, _ := filepath.Glob(scratch)
	r.teamctl("merge", "ann", "--dry-run", "--strategy", "rebase")
	r.teamctl("doctor", "--repair")
	if out, err := r.try(r.exe, "delete"); exitCode(err) != 4 || !strings.Contains(err.Error()+out, "merge of team f is in progress") {
		r.Errorf("delete beside a merge: %v %s", err, out)
	}
	after, _ := filepath.Glob(scratch)
	if len(before) != 1 || len(after) != 1 || before[0] != after[0] {
		r.Errorf("the scratch worktree of a living merge: %v, then %v", before, after)
	}
	if _, err := proc.Identify(pid); err != nil {
		r.Errorf("the gate of a living merge: %v", err)
	}
}

// endsBy fails the test if the process is still running.
func (r *faultRig) endsBy(pid int, at string) {
	r.Helper()
	if _, err := proc.Identify(pid); err == nil {
		r.Errorf("%s: %d lives", at, pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

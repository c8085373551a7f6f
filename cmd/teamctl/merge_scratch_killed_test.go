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

// hidingGate leaves a process in a session of its own that refuses SIGTERM, and waits for
// it, if there is no file of its pid yet; else it passes. Where there are control groups, it has no environment
// either.
func hidingGate(pids string) string {
	env := ""
	if cgroup.Probe().Kill && !cgroup.Contained() {
		env = "env -i "
	}
	return `test -e ` + pids + ` && exit; ` + env + `setsid bash -c 'trap "" TERM; echo $$ >` + pids + `.new; mv ` + pids + `.new ` + pids + `; while :; do sleep 0.1; done' </dev/null >/dev/null 2>&1 &
until test -s ` + pids + `; do sleep 0.02; done; wait`
}

// TestMergeScratchKilled: teamctl merge is killed at each step of its scratch worktree and
// while a gate runs, by SIGKILL and SIGTERM. The next merge, also one that has nothing to
// merge or fails, doctor --repair and delete remove what is left; a merge that lives
// keeps its own.
func TestMergeScratchKilled(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "ann", "--", "sleep", "1000")
	tree := filepath.Join(r.layout.Worktrees(), "ann")
	commit := func(what string) {
		r.command("sh", "-c", `cd "$0" && git reset -q --hard main && echo "$1" >file && git add file && git commit -q -m "$1"`, tree, what)
	}
	clear := [][]string{ // and the exit status
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
		steps, signals = []string{"added", "scratch-made", "moved"}, signals[:2] // each of clear once
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
	r.teamctl("delete", "--force") // what is left in the repository fails the rig
	r.endsBy(pid, "delete")
	r.teamctl("create", "f", "--repo", "repo")
}

// noMergeScratch fails unless nothing is left of the scratch worktrees of merges.
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

// livingMergeIsKept lets others clean up beside a merge whose gate runs.
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

// endsBy fails if a process lives that was to be ended.
func (r *faultRig) endsBy(pid int, at string) {
	r.Helper()
	if _, err := proc.Identify(pid); err == nil {
		r.Errorf("%s: %d lives", at, pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

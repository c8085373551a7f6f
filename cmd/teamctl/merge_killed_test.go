package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/worktree"
)

// envKillAt names the step of a worktree operation at which the test's program kills itself.
const envKillAt = "TEAMCTL_TEST_KILL_AT"

// killedAt returns a context that kills the program at the step in envKillAt, if that is set.
func killedAt() context.Context {
	at := os.Getenv(envKillAt)
	if at == "" {
		return context.Background()
	}
	return worktree.WithSteps(context.Background(), func(step string) {
		if step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
}

// TestMergeKilledAtEveryStep kills teamctl merge at each step of the lane. The next merge
// completes it: each commit lands once, nothing is lost, and the person's checkout matches the
// branch.
func TestMergeKilledAtEveryStep(t *testing.T) {
	r := newFaultRig(t)
	members := []string{"ann", "bob", "cid"}
	for _, m := range members {
		r.teamctl("spawn", m, "--", "sleep", "1000")
	}
	tree := func(m string) string { return filepath.Join(r.layout.Worktrees(), m) }
	steps := []string{
		"stacked", "noted-gating", "scratch-made", "gated", "noted-landing", "forwarding", "moved-target", "noted-landed", "noted-conflict", "noted-red",
	}
	if testing.Short() {
		rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		steps = steps[:2]
	}
	for _, step := range steps {
		round := ""
		for _, m := range members {
			file := map[string]string{"ann": "same", "bob": "same", "cid": "cid-" + step}[m]
			if step == "noted-red" && m == "cid" {
				file = "broken"
			}
			round += "cd " + tree(m) + " && git reset -q --hard main && echo '" + m + " " + step + "' >" + file + " && git add . && git commit -q -m '" + m + " " + step + "' &&\n"
		}
		r.command("sh", "-c", round+"true")
		tips := r.command("git", "-C", "repo", "for-each-ref", "refs/heads/teamctl")
		r.mergeKilledAt(step, members)

		out, err := r.try(r.exe, "merge", "--resume", "--json")
		if code := exitCode(err); code != 0 && code != 4 {
			t.Fatalf("%s: resume: %v", step, err)
		}
		var res struct{ Merges []ledger.Merge }
		if err := json.Unmarshal([]byte(out), &res); err != nil {
			t.Fatalf("%s: %v in %s", step, err, out)
		}
		r.mergedOnce(step, members)
		if now := r.command("git", "-C", "repo", "for-each-ref", "refs/heads/teamctl"); now != tips {
			t.Errorf("%s: a member's branch was moved:\n%s%s", step, tips, now)
		}
		for what, args := range map[string][]string{
			"uncommitted":         {"status", "--porcelain"},
			"stale registrations": {"worktree", "prune", "-n", "-v"},
		} {
			if out := r.command(append([]string{"git", "-C", "repo"}, args...)...); out != "" {
				t.Errorf("%s: %s: %s", step, what, out)
			}
		}
		r.noMergeScratch(step)
	}
	r.command("git", "-C", "repo", "fsck", "--no-dangling")
}

// mergeKilledAt runs a merge that is killed at a step.
func (r *faultRig) mergeKilledAt(step string, members []string) {
	r.Helper()
	cmd := exec.Command(r.exe, append([]string{"merge", "--gate", "test ! -e broken"}, members...)...)
	cmd.Dir, cmd.Env = r.dir, append(r.env[:len(r.env):len(r.env)], envKillAt+"="+step)
	out, _ := cmd.CombinedOutput()
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != syscall.SIGKILL {
		r.Fatalf("not killed at %s: %s", step, out)
	}
}

// mergedOnce checks the commits of one round.
func (r *faultRig) mergedOnce(step string, members []string) {
	r.Helper()
	log := r.command("git", "-C", "repo", "log", "--format=%s", "main")
	want := map[string]int{"ann": 1, "bob": 0, "cid": 1}
	if step == "noted-red" {
		want["cid"] = 0
	}
	for _, m := range members {
		if n := strings.Count(log, m+" "+step+"\n"); n != want[m] {
			r.Errorf("%s: %s is in main %d times, want %d", step, m, n, want[m])
		}
	}
	var queue struct{ Merges []ledger.Merge }
	if err := json.Unmarshal([]byte(r.teamctl("merge", "queue", "--json")), &queue); err != nil || len(queue.Merges) != 0 {
		r.Errorf("%s: still queued: %v %+v", step, err, queue.Merges)
	}
}

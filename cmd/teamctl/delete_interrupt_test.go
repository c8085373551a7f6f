package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

var deleteRounds = flag.Int("delete.rounds", 5, "how many `rounds` the test of a deletion interrupted at random has")

// envInterruptAt names a step of a worktree operation and, after a colon, a file. At the first
// such step the test's program creates the file, and it continues when it has been interrupted.
const envInterruptAt = "TEAMCTL_TEST_INTERRUPT_AT"

// interruptedAt returns a context that makes the program wait for its interrupt at the step in
// envInterruptAt, if that is set. The context is cancelled when the program continues.
func interruptedAt(ctx context.Context) context.Context {
	at, file, ok := strings.Cut(os.Getenv(envInterruptAt), ":")
	if !ok {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var once sync.Once
	return worktree.WithSteps(ctx, func(step string) {
		if step != at {
			return
		}
		once.Do(func() {
			ch := make(chan os.Signal, 1)
			signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM)
			defer signal.Stop(ch)
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				panic(err)
			}
			n, _ := (<-ch).(syscall.Signal)
			cancel(signalError{n}) // at once: the program's own handler may not have run yet
		})
	})
}

// interruptAt runs the program and interrupts it at a step. It returns the exit status, or -1 if
// the signal ended the program, and the output.
func (r *faultRig) interruptAt(step string, sig syscall.Signal, then func(), args ...string) (status int, stdout, stderr string) {
	r.Helper()
	at := filepath.Join(r.dir, "interrupt")
	_ = os.Remove(at)
	return r.interrupt(func() {
		r.until(step, func() bool {
			_, err := os.Lstat(at)
			return err == nil
		})
		if then != nil {
			then()
		}
	}, sig, []string{envInterruptAt + "=" + step + ":" + at}, args...)
}

// interrupt runs the program and interrupts it when wait returns.
func (r *faultRig) interrupt(wait func(), sig syscall.Signal, env []string, args ...string) (status int, stdout, stderr string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.exe, args...)
	cmd.Dir, cmd.Env = r.dir, append(r.env[:len(r.env):len(r.env)], env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, patience
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	wait()
	_ = cmd.Process.Signal(sig) // it may have exited
	_ = cmd.Wait()              // ExitCode reports the result
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// tree creates a member whose worktree has a commit and an uncommitted file, and returns the
// worktree.
func (r *faultRig) tree(name string) string {
	r.Helper()
	r.teamctl("spawn", name, "--backend", "pty", "--", "fakeagent", "hold")
	dir := filepath.Join(r.layout.Worktrees(), name)
	r.command("sh", "-c", `cd "$0" && echo `+name+` >committed && git add . && git commit -q -m `+name+` && echo `+name+` >loose`, dir)
	return dir
}

// TestDeleteInterrupted checks that a deletion that is interrupted after its inspection, before
// it has removed anything, removes nothing and exits with the signal's status. A forced deletion
// has stopped the members by then and reports it.
func TestDeleteInterrupted(t *testing.T) {
	r := newFaultRig(t)
	ann := r.tree("ann")
	for _, c := range []struct {
		sig  syscall.Signal
		want int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		r.teamctl("start", "ann")
		r.state("ann", team.Running)
		status, stdout, stderr := r.interruptAt("inspected", c.sig, nil, "delete", "--force")
		if status != c.want || stdout != "" || !strings.Contains(stderr, "members of team f were asked to end, nothing was deleted") || !strings.Contains(stderr, "teamctl delete f --force") {
			t.Errorf("%s: exit status %d, %q, %q", c.sig, status, stdout, stderr)
		}
		r.whole("forced, "+c.sig.String(), ann)

		// All members have exited: only the interrupt is left to report.
		status, stdout, stderr = r.interruptAt("inspected", c.sig, nil, "delete", "--force")
		if status != c.want || stdout != "" || stderr != "teamctl: interrupted\n" {
			t.Errorf("nothing runs, %s: exit status %d, %q, %q", c.sig, status, stdout, stderr)
		}
		r.whole("nothing runs, "+c.sig.String(), ann)
	}
	// A deletion without --force refuses a worktree with uncommitted work: commit it first.
	r.command("sh", "-c", `cd "$0" && git add . && git commit -q -m loose`, ann)
	if status, _, stderr := r.interruptAt("inspected", syscall.SIGINT, nil, "delete"); status != 130 || stderr != "teamctl: interrupted\n" {
		t.Errorf("not forced: exit status %d, %q", status, stderr)
	}
	r.whole("not forced", ann)
}

// whole checks that the team and a worktree of it are unchanged.
func (r *faultRig) whole(at, dir string) {
	r.Helper()
	if _, err := os.Stat(r.layout.Ledger()); err != nil {
		r.Fatalf("%s: %v", at, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "loose")); err != nil || string(b) != filepath.Base(dir)+"\n" {
		r.Errorf("%s: %q %v", at, b, err)
	}
	if refs := r.command("git", "-C", "repo", "for-each-ref", "refs/teamctl/rescue"); refs != "" {
		r.Errorf("%s: rescued: %s", at, refs)
	}
}

// deleted checks that the team is deleted and the work of its members was saved.
func (r *faultRig) deleted(at string, members ...string) {
	r.Helper()
	if _, err := os.Lstat(r.layout.Dir); err == nil {
		r.Errorf("%s: %s is there", at, r.layout.Dir)
	}
	if list := r.command("git", "-C", "repo", "worktree", "list"); strings.Count(list, "\n") != 1 {
		r.Errorf("%s: %s", at, list)
	}
	for _, m := range members {
		if b := r.command("git", "-C", "repo", "show", "teamctl/f/"+m+":committed"); b != m+"\n" {
			r.Errorf("%s: the branch of %s has %q", at, m, b)
		}
		refs := strings.Fields(r.command("git", "-C", "repo", "for-each-ref", "--format=%(refname)", "refs/teamctl/rescue/f/"+m))
		if len(refs) != 1 {
			r.Errorf("%s: rescued of %s: %v", at, m, refs)
			continue
		}
		if b := r.command("git", "-C", "repo", "show", refs[0]+":loose"); b != m+"\n" {
			r.Errorf("%s: %s has %q", at, refs[0], b)
		}
	}
}

// fresh creates the team again, on a new repository.
func (r *faultRig) fresh() {
	r.Helper()
	r.command("sh", "-c", "rm -rf repo && git init -q -b main repo && git -C repo commit -q --allow-empty -m first")
	r.teamctl("create", "f", "--repo", "repo")
}

// TestDeleteInterruptedLate checks that a deletion that is interrupted after it has begun
// completes, reports that, and exits with its own status.
func TestDeleteInterruptedLate(t *testing.T) {
	r := newFaultRig(t)
	steps := []string{"remove-begun", "moved", "rescued", "doomed", "deleted"}
	if testing.Short() {
		i := rand.IntN(len(steps))
		steps = steps[i : i+1]
	}
	for _, step := range steps {
		r.tree("ann")
		r.tree("bob")
		status, stdout, stderr := r.interruptAt(step, syscall.SIGINT, nil, "delete", "--force")
		if status != 0 || !strings.Contains(stdout, "deleted team f\n") || !strings.Contains(stderr, "the deletion of f has begun") {
			t.Errorf("%s: exit status %d, %q, %q", step, status, stdout, stderr)
		}
		r.deleted(step, "ann", "bob")
		r.fresh()
	}
	// A deletion that fails after the interrupt reports the reason, and the next one completes
	// it.
	r.tree("ann")
	bob := r.tree("bob")
	status, stdout, stderr := r.interruptAt("moved", syscall.SIGTERM, func() {
		r.command("git", "-C", "repo", "worktree", "lock", bob)
	}, "delete", "--force")
	if status != 4 || stdout != "" || !strings.Contains(stderr, "locked") || !strings.Contains(stderr, "remove worktree of bob") {
		t.Errorf("exit status %d, %q, %q", status, stdout, stderr)
	}
	r.command("git", "-C", "repo", "worktree", "unlock", bob)
	r.teamctl("delete", "--force")
	r.deleted("at last", "ann", "bob")
	r.fresh()
}

// TestDeleteInterruptedAtRandom checks that a deletion that is interrupted at any time has
// deleted the team if it exits with 0, and nothing otherwise.
func TestDeleteInterruptedAtRandom(t *testing.T) {
	r := newFaultRig(t)
	r.tree("ann")
	began := time.Now()
	r.teamctl("delete", "--force")
	within := time.Since(began) // duration of a deletion
	r.fresh()
	done := map[string]int{}
	rounds := *deleteRounds
	if testing.Short() {
		rounds = min(rounds, 1)
	}
	for round := range rounds {
		ann := r.tree("ann")
		before := r.state("ann", team.Running)
		after := rand.N(within)
		status, stdout, stderr := r.interrupt(func() { <-time.After(after) }, syscall.SIGINT, nil, "delete", "--force")
		at := fmt.Sprintf("round %d, interrupted after %s: exit status %d, %q, %q", round, after, status, stdout, stderr)
		switch {
		case status == 0:
			done["deleted"]++
			if !strings.Contains(stdout, "deleted team f\n") {
				t.Error(at)
			}
			r.deleted(at, "ann")
			r.fresh()
			continue
		case status != 130 && status != -1: // -1: before it handled signals
			t.Fatal(at)
		case stdout != "":
			t.Fatal(at)
		case strings.Contains(stderr, "asked to end"):
			done["ended"]++
		default:
			done["unchanged"]++
			if m := r.state("ann", team.Running); m.Generation != before.Generation {
				t.Errorf("%s: it is another generation", at)
			}
		}
		r.whole(at, ann)
		r.teamctl("delete", "--force")
		r.deleted(at, "ann")
		r.fresh()
	}
	t.Log(done)
}

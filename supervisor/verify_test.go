package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// path is a file where the members of a rig work.
func (r *rig) path(name string) string { return filepath.Join(r.layout.Dir, name) }

func (r *rig) touch(name string) {
	r.Helper()
	if err := os.WriteFile(r.path(name), nil, 0o600); err != nil {
		r.Fatal(err)
	}
}

// handIn creates a task with a verification, and has its owner submit it.
func (r *rig) handIn(m ledger.Member, command, timeout string) ledger.TaskRef {
	r.Helper()
	n := ledger.NewTask{Subject: "work", Verify: command}
	if timeout != "" {
		n.Metadata = json.RawMessage(fmt.Sprintf(`{"timeout":%q}`, timeout))
	}
	made, err := r.led.CreateTasks(r.Context(), []ledger.NewTask{n}, team.LeadName)
	if err != nil {
		r.Fatal(err)
	}
	task, err := r.led.Claim(r.Context(), ledger.ClaimIn{Owner: m.SessionKey, ID: made[0].ID})
	if err != nil {
		r.Fatal(err)
	}
	ref := ledger.TaskRef{ID: task.ID, Owner: m.SessionKey, Attempt: task.Attempt}
	r.complete(ref)
	return ref
}

func (r *rig) complete(ref ledger.TaskRef) {
	r.Helper()
	if _, err := r.led.Complete(r.Context(), ref, ledger.Result{Summary: "done"}); err != nil {
		r.Fatal(err)
	}
	// The supervisor may have judged it already.
	for _, e := range r.events(team.EventTaskVerify, 1) {
		if e.ID == ref.ID {
			return
		}
	}
	r.Fatalf("task %s is not to be verified", ref.ID)
}

func (r *rig) task(id string) ledger.Task {
	r.Helper()
	task, err := r.led.Task(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return task
}

func (r *rig) settled(id string, want team.TaskStatus) ledger.Task {
	r.Helper()
	var task ledger.Task
	r.until("task "+id+" "+string(want)+" and not being verified", func() bool {
		task = r.task(id)
		return task.Status == want && task.Verification == 0
	})
	return task
}

// hang is a command that writes to a file the pid of a process that it starts in a session
// of its own, and exits by itself only if the file "through" exists.
const hang = `test -e through && exit 0
setsid bash -c 'echo $$ > pid.new && mv pid.new pid; exec sleep 600' </dev/null >/dev/null 2>&1 &
until test -e pid; do sleep 0.02; done; wait`

// hanging waits for the process that hang has started.
func (r *rig) hanging() (pid int) {
	r.Helper()
	r.until("the command to hang", func() bool {
		b, err := os.ReadFile(r.path("pid"))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	r.Cleanup(func() { // whatever the test has found
		if id, err := proc.Identify(pid); err == nil && r.Failed() {
			_ = proc.Signal(id, 9)
		}
	})
	return pid
}

func (r *rig) gone(pid int) {
	r.Helper()
	r.until(fmt.Sprintf("process %d to be gone", pid), func() bool {
		_, err := proc.Identify(pid)
		return err != nil
	})
}

// swept waits until no verification needs anything.
func (r *rig) swept() {
	r.Helper()
	r.until("nothing left to verify", func() bool {
		todo, err := r.led.Unverified(r.Context())
		return err == nil && len(todo) == 0
	})
}

// Work that fails is returned with the end of the output, and work that passes is completed.
func TestVerifyFailsThenPasses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartNever)
	ref := r.handIn(m, `echo $TEAMCTL_TASK_ID $PWD; printf '\033[31mFAIL\033[0m\n' >&2; test -e ok || exit 3`, "")
	task := r.settled(ref.ID, team.TaskInProgress)
	if task.Owner != m.SessionKey || task.Attempt != ref.Attempt || task.LeaseUntil == 0 {
		t.Errorf("%+v", task)
	}
	var mail []string
	r.until("told", func() bool { mail = r.unread("a"); return len(mail) > 0 })
	log := r.layout.Bundle("a").VerifyLog()
	if len(mail) != 1 || !strings.Contains(mail[0], "exit 3") || !strings.Contains(mail[0], ref.ID+" "+r.layout.Dir+"\nFAIL") || !strings.Contains(mail[0], log) {
		t.Errorf("told %q", mail)
	}
	r.touch("ok")
	r.complete(ref)
	if task := r.settled(ref.ID, team.TaskCompleted); task.Result.Summary != "done" {
		t.Errorf("%+v", task.Result)
	}
	text, err := os.ReadFile(log)
	if err != nil || strings.Count(string(text), "── task "+ref.ID+", attempt 1") != 2 || !strings.Contains(string(text), "── exit 3, ") || !strings.Contains(string(text), "── exit 0, ") {
		t.Errorf("%q, %v", text, err)
	}
	r.swept()
}

// At its time limit all processes that the command has started are ended, hidden ones included.
func TestVerifyTimesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartNever)
	ref := r.handIn(m, hang, "1s")
	for limit := 2 * time.Second; ; limit *= 2 { // longer, where it did not come so far
		r.settled(ref.ID, team.TaskInProgress)
		if _, err := os.Stat(r.path("pid")); err == nil {
			break
		}
		if limit > time.Minute {
			t.Fatal("the command never ran")
		}
		raw := json.RawMessage(fmt.Sprintf(`{"timeout":%q}`, limit))
		if _, err := r.led.UpdateTask(t.Context(), ledger.TaskPatch{ID: ref.ID, Metadata: raw}); err != nil {
			t.Fatal(err)
		}
		r.complete(ref)
	}
	r.gone(r.hanging())
	failed := r.events("task.verify_failed", 1)
	if last := string(failed[len(failed)-1].Data); !strings.Contains(last, `"exitCode":124`) || !strings.Contains(last, `"why":"timed out after `) {
		t.Error(last)
	}
}

// The verification of a task that is released is ended with all that it has started.
func TestVerifyEndsWithTheTask(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(r *rig, ref ledger.TaskRef) error{
		"released": func(r *rig, ref ledger.TaskRef) error { return r.led.Release(r.Context(), ref) },
		"assigned": func(r *rig, ref ledger.TaskRef) error {
			_, err := r.led.Reassign(r.Context(), ref.ID, "", team.LeadName)
			return err
		},
		"deleted": func(r *rig, ref ledger.TaskRef) error {
			if err := r.led.Release(r.Context(), ref); err != nil {
				return err
			}
			_, err := r.led.DeleteTask(r.Context(), ref.ID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.supervisor()
			ref := r.handIn(r.spawn(s, "a", team.RestartNever), hang, "")
			pid := r.hanging()
			if err := take(r, ref); err != nil {
				t.Fatal(err)
			}
			r.gone(pid)
			r.swept()
			if todo, err := r.led.Unverified(t.Context()); err != nil || len(todo) != 0 {
				t.Errorf("%+v, %v", todo, err)
			}
			for _, what := range []string{"task.verified", "task.verify_failed"} {
				if ended := r.events(what, 0); len(ended) != 0 {
					t.Errorf("%s: %+v", what, ended)
				}
			}
		})
	}
}

// A supervisor that ends during a verification leaves nothing, and the next one runs it again.
func TestVerifyAgainAfterTheSupervisor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	ref := r.handIn(r.spawn(s, "a", team.RestartNever), hang, "")
	pid := r.hanging()
	s.Close()
	if _, err := proc.Identify(pid); err == nil {
		t.Error("it outlived the supervisor")
	}
	if task := r.task(ref.ID); task.Verification == 0 || task.Status != team.TaskInProgress {
		t.Fatalf("%+v", task)
	}
	r.touch("through")
	r.supervisor()
	r.settled(ref.ID, team.TaskCompleted)
	r.swept()
}

// Processes of a killed supervisor are found by their generation and ended, and the verification is
// run again; they are ended, too, if nothing waits for it any more.
func TestVerifyLeftByAKilledSupervisor(t *testing.T) {
	t.Parallel()
	for _, dropped := range []bool{false, true} {
		t.Run(fmt.Sprint("dropped=", dropped), func(t *testing.T) {
			r := newRig(t)
			s := r.supervisor()
			m := r.spawn(s, "a", team.RestartNever)
			s.Close()
			ref := r.handIn(m, hang, "")
			id, gen := r.task(ref.ID).Verification, team.NewUUID()
			if err := r.led.BeginVerification(t.Context(), id, gen, ""); err != nil {
				t.Fatal(err)
			}
			pid := r.leave(gen)
			if dropped {
				if err := r.led.Release(t.Context(), ref); err != nil {
					t.Fatal(err)
				}
			}
			r.touch("through")
			r.supervisor()
			r.gone(pid)
			r.swept()
			want := team.TaskCompleted
			if dropped {
				want = team.TaskPending
			}
			r.settled(ref.ID, want)
		})
	}
}

// Two members are verified concurrently, and the tasks of one in turn.
func TestVerifyOfSeveral(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	a, b := r.spawn(s, "a", team.RestartNever), r.spawn(s, "b", team.RestartNever)
	meet := "touch %s; until test -e %s; do sleep 0.02; done"
	refs := []ledger.TaskRef{
		r.handIn(a, fmt.Sprintf(meet, "one", "two"), ""), r.handIn(b, fmt.Sprintf(meet, "two", "one"), ""),
		r.handIn(a, "mkdir alone && sleep 0.1 && rmdir alone", ""), r.handIn(a, "mkdir alone && sleep 0.1 && rmdir alone", ""),
	}
	for _, ref := range refs {
		r.settled(ref.ID, team.TaskCompleted)
	}
}

// A task whose worktree is gone cannot be continued by its owner.
func TestVerifyWithoutAWorktree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartNever)
	gone := r.path("gone")
	if _, err := r.led.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, Worktree: &gone}); err != nil {
		t.Fatal(err)
	}
	ref := r.handIn(m, "true", "")
	if task := r.settled(ref.ID, team.TaskPending); task.Owner != "" {
		t.Errorf("%+v", task)
	}
	if e := r.events("task.verify_failed", 1)[0]; !strings.Contains(string(e.Data), gone+" is gone") {
		t.Errorf("%s", e.Data)
	}
}

// The member has ended: its submitted task is verified nevertheless, and the supervisor does not
// exit before the result is known.
func TestVerifyAfterTheMember(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartNever)
	s.Close()
	r.idle = time.Millisecond // it leaves as soon as it has nothing to do
	s = r.supervisor()
	ref := r.handIn(m, "until test -e through; do sleep 0.02; done", "")
	r.until("verified", func() bool {
		begun, err := r.led.Events(t.Context(), 0, 0, ledger.EventFilter{What: "task.verifying"})
		return err == nil && len(begun) == 1
	})
	if err := r.m.agent(r.layout, "a").Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	r.wait("a", "ended", func(m ledger.Member) bool { return m.Observed.Terminal() })
	if task := r.task(ref.ID); task.Verification == 0 {
		t.Errorf("%+v", task)
	}
	r.touch("through")
	r.settled(ref.ID, team.TaskCompleted)
	select {
	case <-s.Done():
	case <-time.After(5 * time.Minute):
		t.Error("the supervisor stays")
	}
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// brokenSpace cannot commit.
type brokenSpace struct{ gitSpace }

func (brokenSpace) Commit(context.Context, string) (string, []string, bool, error) {
	return "", nil, false, team.Errorf(team.CodeUnavailable, "no space left on device")
}

func TestBrokenWorktreeGivesTheTaskBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ts := r.add(task("x", "true"))
	w := r.start("ann", func(e *Env) { e.Workspace = brokenSpace{} })
	if err := w.wait(); !team.IsCode(err, team.CodeUnavailable) {
		t.Fatalf("ended with %v", err)
	}
	if got := r.task(ts[0].ID); got.Status != team.TaskPending || got.Owner != "" {
		t.Errorf("task is %s of %q", got.Status, got.Owner)
	}
}

// endless returns a worker that is running an endless command, and a file with the command's
// process group.
func (r *rig) endless() (w *life, ts []ledger.Task, pidfile string) {
	r.t.Helper()
	pidfile = r.path("group")
	ts = r.add(task("x", fmt.Sprintf(`echo $$ > %q.new; mv %q.new %q; sleep 300`, pidfile, pidfile, pidfile)))
	w = r.start("ann")
	r.until("the command", func() bool { _, err := os.Stat(pidfile); return err == nil })
	return w, ts, pidfile
}

func TestTakenAwayWhileRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, ts, pidfile := r.endless()
	if _, err := r.led.ReleaseOwner(t.Context(), w.id.Session, "test"); err != nil {
		t.Fatal(err)
	}
	if got, err := r.led.Claim(t.Context(), ledger.ClaimIn{Owner: "other", ID: ts[0].ID}); err != nil || got.Attempt != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.shows("was taken away after")
	if left := below(t, group(t, pidfile)); len(left) != 0 {
		t.Errorf("the command still runs: %v", left)
	}
	if got := r.task(ts[0].ID); got.Owner != "other" || got.Status != team.TaskClaimed {
		t.Errorf("task is %s of %s", got.Status, got.Owner)
	}
	if next := r.ended(r.add(task("y", "true"))[0].ID); next.OwnerName != "ann" {
		t.Errorf("the next task was done by %q", next.OwnerName)
	}
}

// TestInterruptedTask checks that canceling a claim ends its command with all processes it has
// started, and that the worker reports the interruption and continues with the next task.
func TestInterruptedTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, ts, pidfile := r.endless()
	claim := ledger.TaskRef{ID: ts[0].ID, Owner: w.id.Session, Attempt: 1}
	if _, err := r.led.CancelClaim(t.Context(), claim, "interrupted"); err != nil {
		t.Fatal(err)
	}
	w.shows("the task is ended: canceled by supervisor: interrupted")
	if left := below(t, group(t, pidfile)); len(left) != 0 {
		t.Errorf("the command still runs: %v", left)
	}
	if got := r.task(ts[0].ID); got.Status != team.TaskFailed || got.Attempt != 1 {
		t.Errorf("task is %s at attempt %d", got.Status, got.Attempt)
	}
	idle := func() []ledger.Message { return r.messages("ann", team.KindIdle) }
	r.until("the idle notice", func() bool { return len(idle()) > 0 })
	if text := idle()[0].Text; !strings.Contains(text, `"interrupted"`) {
		t.Errorf("idle notice %s", text)
	}
	if next := r.ended(r.add(task("y", "true"))[0].ID); next.OwnerName != "ann" || next.Status != team.TaskCompleted {
		t.Errorf("the next task is %s by %q", next.Status, next.OwnerName)
	}
	r.until("another idle notice", func() bool { return len(idle()) > 1 })
	if text := idle()[1].Text; !strings.Contains(text, `"available"`) {
		t.Errorf("idle notice %s", text)
	}
}

// TestLateResultIsRefused checks that a late result is refused because of its attempt, reported,
// and not fatal.
func TestLateResultIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ts := r.add(task("x", "true"))
	var once sync.Once
	w := r.start("ann", func(e *Env) {
		e.Tasks = hooked{e.Tasks, func() {
			once.Do(func() {
				s := r.task(ts[0].ID).Owner
				if _, err := r.led.ReleaseOwner(context.Background(), s, "test"); err != nil {
					r.t.Error(err)
				}
			})
		}}
	})
	w.shows("its result is not recorded")
	if got := r.ended(ts[0].ID); got.Attempt != 2 || got.Status != team.TaskCompleted {
		t.Errorf("%s at attempt %d", got.Status, got.Attempt)
	}
}

// hooked calls a hook before a task is completed.
type hooked struct {
	Tasks
	before func()
}

func (h hooked) Complete(ctx context.Context, ref ledger.TaskRef, res ledger.Result, passed string) error {
	h.before()
	return h.Tasks.Complete(ctx, ref, res, passed)
}

// lossy is a Writer that applies the first claims and completions but loses their answers.
type lossy struct {
	ledger.Writer
	left *atomic.Int32
}

func (l lossy) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	out, err := l.Writer.Write(ctx, op)
	if (op.Name == "task.claim" || op.Name == "task.complete") && l.left.Add(-1) >= 0 {
		return nil, team.Errorf(team.CodeTimeout, "the ledger is busy").WithReason(team.ReasonBusy)
	}
	return out, err
}

// TestLostAnswers checks that operations without an answer are repeated but applied once: the
// worker has no second claim that it does not know of, and no completion is taken for that of
// another.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for lost := int32(1); lost <= 5; lost++ {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ts := r.add(task("x", "true"), task("y", "true"))
			left := &atomic.Int32{}
			left.Store(lost)
			w := r.start("ann", func(e *Env) {
				db := e.Ledger.(*ledger.Ledger).DB()
				led := ledger.New(db, lossy{ledger.Direct(db), left})
				m, err := led.Member(t.Context(), "ann")
				if err != nil {
					t.Fatal(err)
				}
				e.Ledger, e.Tasks = led, r.tasks(led, m)
			})
			for _, x := range ts {
				if got := r.ended(x.ID); got.Status != team.TaskCompleted || got.Attempt != 1 {
					t.Errorf("task %s is %s at attempt %d", got.ID, got.Status, got.Attempt)
				}
			}
			w.shows("the ledger is busy; trying again")
			w.idle()
			if s := w.out.String(); strings.Contains(s, "taken away") || strings.Contains(s, "given back") {
				t.Errorf("screen:\n%s", s)
			}
		})
	}
}

// TestNextLifeRecovers checks that a restarted worker releases the tasks that the killed one
// held, and sends the completion notice that it may not have sent, but only once.
func TestNextLifeRecovers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.join("ann", team.TeammateSessionKey(""), team.RoleExecutor)
	ts := r.add(task("done", "true"), task("held", "true"))
	ctx := t.Context()
	for _, x := range ts {
		if _, err := r.led.Claim(ctx, ledger.ClaimIn{Owner: m.SessionKey, ID: x.ID}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.led.Complete(ctx, ledger.TaskRef{ID: ts[0].ID, Owner: m.SessionKey, Attempt: 1}, ledger.Result{Summary: "s"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w := r.start("ann")
		if got := r.ended(ts[1].ID); got.Attempt != 2 {
			t.Errorf("held task at attempt %d", got.Attempt)
		}
		w.idle()
		if err := w.stop(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	for _, n := range r.messages("ann", team.KindTaskCompleted) {
		f, _ := inbox.Parse(n.Text)
		seen[f.(inbox.TaskCompleted).TaskID]++
	}
	if seen[ts[0].ID] != 1 || seen[ts[1].ID] != 1 {
		t.Errorf("notices %v", seen)
	}
}

func TestRemovedMemberEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.start("ann")
	w.idle()
	if err := r.led.RemoveMember(t.Context(), w.id.Session); err != nil {
		t.Fatal(err)
	}
	r.add(task("x", "true"))
	if err := w.wait(); !team.IsCode(err, team.CodeDenied) {
		t.Errorf("ended with %v", err)
	}
}

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// hungRig is a team whose supervisor, which members need, does not answer. attended receives the
// context of each wait that has asked it.
func newHungRig(t *testing.T) (r talkRig, attended chan context.Context) {
	t.Helper()
	r = newTalkRig(t)
	attended = make(chan context.Context, 1)
	r.Env.Dial = func(ctx context.Context, _ team.Layout, _ bool) (Supervisor, error) {
		attended <- ctx
		return nil, team.Errorf(team.CodeUnavailable, "the supervisor, pid 1, does not answer").WithReason(team.ReasonHung).WithHint("kill -9 1")
	}
	return r, attended
}

// A wait that is reading the ledger when its supervisor is found to be silent ends with that error,
// like one that is at rest, and not with the error of the reading.
func TestWaitsEndWithTheReason(t *testing.T) {
	t.Parallel()
	r, attended := newHungRig(t)
	r.as("a", team.RoleExecutor)
	one := newTasks("one")
	one[0].Metadata = []byte(`{"run":"true"}`)
	if _, err := r.TaskAdd(t.Context(), Person(), TaskAddIn{Tasks: one}); err != nil {
		t.Fatal(err)
	}
	ended := func() { <-(<-attended).Done() } // from now on every reading fails
	waits := map[string]func(context.Context) error{
		"tasks": func(ctx context.Context) error {
			_, err := r.Wait(ctx, WaitIn{Each: func(Progress) { ended() }})
			return err
		},
		"events": func(ctx context.Context) error {
			first := true
			return r.Follow(ctx, 0, func(ledger.Event) error {
				if first {
					first = false
					ended()
				}
				return nil
			})
		},
		"scratchpad": func(ctx context.Context) error {
			return r.ScratchpadWatch(ctx, func(ledger.Scratchpad) error {
				ended()
				_, err := r.ScratchpadMerge(t.Context(), Person(), json.RawMessage(`{"a":1}`), nil)
				return err
			})
		},
	}
	for range 10 { // which of two ready channels is received from is chance
		for name, wait := range waits {
			denied(t, wait(t.Context()), team.CodeUnavailable, team.ReasonHung)
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

// The same at a random moment of a wait.
func TestEveryWaitEndsWithTheReason(t *testing.T) {
	t.Parallel()
	r, attended := newHungRig(t)
	ctx := t.Context()
	a, b := r.as("a", team.RoleExecutor), r.as("b", team.RoleExecutor)
	sent := r.say(Person(), "a", "one")
	asked, err := r.AskPermission(ctx, a, PermissionIn{ToolName: "Bash"})
	if err != nil {
		t.Fatal(err)
	}
	one := newTasks("one")
	one[0].Metadata = []byte(`{"run":"true"}`)
	if _, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: one}); err != nil {
		t.Fatal(err)
	}
	for range 20 { // when it is found is chance
		for name, wait := range map[string]func() error{
			"tasks":    func() error { _, err := r.Wait(ctx, WaitIn{}); return err },
			"message":  func() error { _, err := r.Await(ctx, sent.MessageID, team.Read, 0); return err },
			"approval": func() error { _, err := r.AwaitApproval(ctx, asked.ID, 0); return err },
			"member":   func() error { _, err := r.AwaitMember(ctx, "a", "idle", 0); return err },
			"mail":     func() error { _, err := r.InboxNext(ctx, b, time.Hour); return err },
			"events": func() error {
				_, err := r.AwaitEvents(ctx, 1<<40, 1, ledger.EventFilter{}, time.Hour)
				return err
			},
		} {
			denied(t, wait(), team.CodeUnavailable, team.ReasonHung)
			<-attended
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

// A program that only shows the team does not ask the supervisor whether it answers: it would wake
// both for ever. A command that waits does, less often the longer it waits.
func TestKeptAsksNothing(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	lock, ok, err := filelock.TryLock(r.Layout.SupervisorLock())
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() { _ = lock.Unlock() })
	if err := os.WriteFile(r.Layout.SupervisorPID(), fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), team.SupervisorAdopted), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	r.Env.Dial = func(context.Context, team.Layout, bool) (Supervisor, error) {
		asked.Add(1)
		return nil, team.Errorf(team.CodeUnavailable, "the supervisor does not answer").WithReason(team.ReasonHung)
	}
	kept, leave := r.Kept(t.Context())
	attended, stop := r.Attended(t.Context())
	<-attended.Done()
	if err := kept.Err(); err != nil || asked.Load() != 1 {
		t.Errorf("kept: %v, %d questions; want one, of the command that waits", err, asked.Load())
	}
	for _, end := range []func(*error){leave, stop} {
		err := context.Canceled
		end(&err)
	}
	for waited, want := range map[time.Duration]time.Duration{time.Second: attendLook, 20 * time.Second: 20 * time.Second, time.Hour: attendMost} {
		if got := nextLook(waited); got != want {
			t.Errorf("next look after %v: %v, want %v", waited, got, want)
		}
	}
}

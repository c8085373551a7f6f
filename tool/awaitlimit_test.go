package tool

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A timeout that has passed before anything was set up or read ends each of the waits with its own
// answer and hint, like a later one.
func TestLimitThatComesAtOnce(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
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
	const limit = time.Nanosecond
	for range 20 { // which of two ready channels is received from is chance
		_, err := r.Wait(ctx, WaitIn{Timeout: limit})
		timely(t, err, "tasks are not done", "teamctl task ls")
		_, err = r.Await(ctx, sent.MessageID, team.Read, limit)
		timely(t, err, "not read after", "teamctl message show")
		_, err = r.AwaitApproval(ctx, asked.ID, limit)
		timely(t, err, "was not answered", "teamctl approvals")
		_, err = r.AwaitMember(ctx, "a", "idle", limit)
		timely(t, err, "is not idle", "teamctl capture")
	}
	list, err := r.AwaitEvents(ctx, 1<<40, 1, ledger.EventFilter{}, limit)
	if err != nil || len(list) != 0 {
		t.Errorf("%v, %v: no event is not an error", list, err)
	}
}

func timely(t *testing.T, err error, text, hint string) {
	t.Helper()
	denied(t, err, team.CodeTimeout, "")
	if !strings.Contains(err.Error(), text) || !strings.HasPrefix(team.HintOf(err), hint) {
		t.Errorf("%v (%s)", err, team.HintOf(err))
	}
}

// A wait for a member that was given up ends at once with that reason; a member that is being
// restarted is waited for.
func TestAwaitOneThatHasFailed(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	a := r.as("a", team.RoleExecutor)
	move := func(p ledger.MemberPatch) {
		p.SessionKey = a.Session
		if _, err := r.Ledger.UpdateMember(ctx, p); err != nil {
			t.Error(err)
		}
	}
	exited, failed, starting, running := team.Exited, team.Failed, team.Starting, team.Running
	move(ledger.MemberPatch{Observed: &exited})
	move(ledger.MemberPatch{Observed: &failed})
	_, err := r.AwaitMember(ctx, "a", "running", time.Minute)
	denied(t, err, team.CodeConflict, "not_running")

	next := time.Now().UnixMilli()
	move(ledger.MemberPatch{NextStart: &next})
	found := make(chan error, 1)
	go func() {
		_, err := r.AwaitMember(ctx, "a", "running", time.Minute)
		found <- err
	}()
	move(ledger.MemberPatch{Observed: &starting, NextStart: new(int64)})
	move(ledger.MemberPatch{Observed: &running})
	if err := <-found; err != nil {
		t.Error(err)
	}
}

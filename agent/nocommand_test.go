package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestTasksWithoutACommandAreLeft checks that a worker never claims a task without a command,
// whatever its priority, and answers an assignment of or a request for one with the reason.
func TestTasksWithoutACommandAreLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	prose := ledger.NewTask{Subject: "think", Description: "prose", Priority: 9}
	blank := task("blank", " \n\t")
	null := ledger.NewTask{Subject: "null", Description: "d", Metadata: json.RawMessage(`{"run":null}`)}
	assigned := ledger.NewTask{Subject: "mine", Description: "d"}
	ts := r.add(prose, blank, null, assigned, task("first", "true"))
	w := r.start("ann")
	if got := r.ended(ts[4].ID); got.Status != team.TaskCompleted {
		t.Fatalf("%+v", got)
	}
	w.idle()
	// The same holds for a task that is added while the worker is idle.
	if got := r.ended(r.add(task("second", "true"))[0].ID); got.Status != team.TaskCompleted {
		t.Fatalf("%+v", got)
	}
	text, err := inbox.Encode(inbox.TaskAssignment{TaskID: ts[3].ID, Subject: "mine", AssignedBy: team.LeadName})
	if err != nil {
		t.Fatal(err)
	}
	ann, err := r.led.Member(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.led.Reassign(t.Context(), ts[3].ID, ann.SessionKey, team.LeadName); err != nil {
		t.Fatal(err)
	}
	r.send(ledger.NewMessage{Kind: team.KindTaskAssignment, From: team.LeadName, To: "ann", Text: text})
	r.send(ledger.NewMessage{Kind: team.KindTaskRequest, From: team.LeadName, To: "ann", Text: "please do task #" + ts[0].ID})
	for id, kind := range map[string]team.Kind{ts[3].ID: team.KindError, ts[0].ID: team.KindTaskResponse} {
		r.until("its answer", func() bool { return len(r.messages("ann", kind)) == 1 })
		if m := r.messages("ann", kind)[0]; m.To != team.LeadName || !strings.HasPrefix(m.Text, "task "+id+" waits: it has no command") {
			t.Errorf("%+v", m)
		}
	}
	for _, task := range ts[:4] {
		if now := r.task(task.ID); now.Status != team.TaskPending || now.Attempt != 0 {
			t.Errorf("task %s is %s, attempt %d", now.ID, now.Status, now.Attempt)
		}
	}
}

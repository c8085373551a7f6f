package tool

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// teamctl cannot observe whether the lead or a program that has joined lives: they keep their tasks
// by using them. Another member's use of a task does not count.
func TestUsingATaskKeepsIt(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	guest, _ := r.memberOf(team.AgentExternal, "guest", team.RoleExecutor)
	other := r.as("other", team.RoleLeader)
	lead, err := r.Ledger.Member(ctx, team.LeadName)
	if err != nil {
		t.Fatal(err)
	}
	half := time.Now().Add(ledger.Lease / 2).UnixMilli()
	for name, tt := range map[string]struct {
		owner string
		by    Caller
		use   func(c Caller, id string) error
		kept  bool
	}{
		"updated": {guest.Session, guest, func(c Caller, id string) error {
			_, err := r.TaskUpdate(ctx, c, TaskUpdateIn{TaskID: id, Metadata: []byte(`{"done":1}`)})
			return err
		}, true},
		"updated by the person": {lead.SessionKey, Person(), func(c Caller, id string) error {
			_, err := r.TaskUpdate(ctx, c, TaskUpdateIn{TaskID: id, Metadata: []byte(`{"done":1}`)})
			return err
		}, true},
		"updated by another": {guest.Session, other, func(c Caller, id string) error {
			_, err := r.TaskUpdate(ctx, c, TaskUpdateIn{TaskID: id, Metadata: []byte(`{"done":1}`)})
			return err
		}, false},
		"looked at": {guest.Session, guest, func(c Caller, id string) error {
			task, err := r.Ledger.Task(ctx, id)
			r.Used(ctx, c, task)
			return err
		}, true},
		"looked at by another": {guest.Session, other, func(c Caller, id string) error {
			task, err := r.Ledger.Task(ctx, id)
			r.Used(ctx, c, task)
			return err
		}, false},
	} {
		made, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: []ledger.NewTask{{Subject: name}}})
		if err != nil {
			t.Fatal(err)
		}
		id := made[0].ID
		if _, err := r.Ledger.Claim(ctx, ledger.ClaimIn{Owner: tt.owner, ID: id, Lease: time.Minute / 2}); err != nil {
			t.Fatal(err)
		}
		if err := tt.use(tt.by, id); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		task, err := r.Ledger.Task(ctx, id)
		if err != nil || (task.LeaseUntil > half) != tt.kept {
			t.Errorf("%s: held until %v, %v", name, time.UnixMilli(task.LeaseUntil), err)
		}
		// One owner's renewal is for all that it holds: the next case begins without.
		if _, err := r.Ledger.Reassign(ctx, id, "", team.LeadName); err != nil {
			t.Fatal(err)
		}
	}
}

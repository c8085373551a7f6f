package tool

import (
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestSpeak checks that a protocol message is a sentence, and that what people write stays as it is.
func TestSpeak(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m    ledger.Message
		want Spoken
	}{
		{ledger.Message{Kind: team.KindTaskCompleted, Summary: "completed task 2: lint", Text: `{"type":"task_completed","from":"a","taskId":"2","taskSubject":"lint","timestamp":"x"}`},
			Spoken{"completed task 2: lint", "Teammate a completed task 2: lint", true}},
		{ledger.Message{Kind: team.KindPermissionRequest, Text: `{"type":"permission_request","request_id":"r","agent_id":"a","tool_name":"Bash","tool_use_id":"u","description":"run it","input":{"command":"ls","n":2},"permission_suggestions":[]}`},
			Spoken{"Permission is asked to use Bash. run it command: ls...", "Permission is asked to use Bash.\nrun it\ncommand: ls\nn: 2", true}},
		{ledger.Message{Kind: team.KindIdle, Text: `{"type":"idle_notification"}`}, Spoken{"idle notification", "idle notification", true}},
		{ledger.Message{Kind: team.KindMessage, Text: `{"a":1}`}, Spoken{`{"a":1}`, `{"a":1}`, false}},
		{ledger.Message{Kind: team.KindMessage, Text: "look\nthere"}, Spoken{"look there", "look\nthere", false}},
	} {
		if got := Speak(c.m); got != c.want {
			t.Errorf("%s:\n%+v, want\n%+v", c.m.Text, got, c.want)
		}
	}
}

// TestAlike checks which members a group names.
func TestAlike(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	for _, name := range []string{"worker-1", "worker-12", "worker-x", "worker-", "workers"} {
		r.member(name, team.RoleExecutor)
	}
	one, _ := r.member("worker-2", team.RoleExecutor)
	names, ok, err := r.Alike(t.Context(), one, "worker-*")
	if slices.Sort(names); err != nil || !ok || strings.Join(names, " ") != "worker-1 worker-12" {
		t.Errorf("%q, %t, %v", names, ok, err)
	}
	if _, ok, err := r.Alike(t.Context(), one, "worker-1"); ok || err != nil {
		t.Errorf("one member: %t, %v", ok, err)
	}
	if _, ok, err := r.Alike(t.Context(), one, "tester-*"); !ok || !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("none: %t, %v", ok, err)
	}
}

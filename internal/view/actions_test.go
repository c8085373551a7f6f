package view

import (
	"slices"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func ids(list []Action) (out []string) {
	for _, a := range list {
		out = append(out, a.ID)
	}
	return out
}

// TestActionsOn: what is offered is what can be done with the thing now.
func TestActionsOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		on       Target
		has, not []string
	}{
		{"a permission", Target{Thing: OnApproval, Need: &Need{Kind: NeedPermission, Member: "w", Approval: 3}}, []string{"approve", "reject", "approve-edited", "message", "attach"}, []string{"answer", "restart"}},
		{"a question", Target{Thing: OnApproval, Need: &Need{Kind: NeedPermission, Member: "w", Approval: 3, Question: true}}, []string{"answer", "reject"}, []string{"approve", "approve-edited"}},
		{"a plan", Target{Thing: OnApproval, Need: &Need{Kind: NeedPlan, Member: "w", Approval: 3}}, []string{"approve", "reject"}, []string{"approve-edited"}},
		{"a running member", Target{Thing: OnMember, Member: &Member{Name: "w", State: team.Running}}, []string{"message", "attach", "pause", "kill", "interrupt"}, []string{"start", "resume"}},
		{"a paused member", Target{Thing: OnMember, Member: &Member{Name: "w", State: team.Running, Paused: true}}, []string{"resume"}, []string{"pause"}},
		{"the lead", Target{Thing: OnMember, Member: &Member{Name: team.LeadName, State: team.Running, Lead: true}}, nil, []string{"message", "attach", "restart", "kill"}},
		{"a failed task", Target{Thing: OnTask, Task: &Task{ID: "5", Status: team.TaskFailed, Owner: "w"}}, []string{"retry", "message", "delete-task"}, []string{"assign", "release"}},
		{"a task in work", Target{Thing: OnTask, Task: &Task{ID: "5", Status: team.TaskInProgress, Owner: "w"}}, []string{"release", "assign"}, []string{"retry"}},
	} {
		got := ids(ActionsOn(c.on))
		for _, id := range c.has {
			if !slices.Contains(got, id) {
				t.Errorf("%s: no %s among %v", c.name, id, got)
			}
		}
		for _, id := range c.not {
			if slices.Contains(got, id) {
				t.Errorf("%s: %s among %v", c.name, id, got)
			}
		}
	}
}

func TestActionLine(t *testing.T) {
	t.Parallel()
	reject, _ := ActionByID("reject")
	on := Target{Thing: OnApproval, Need: &Need{Kind: NeedPlan, Member: "w", Approval: 3}}
	d := on.Deed(reject)
	if got, want := reject.Line(d), "teamctl approvals reject 3 --feedback {text}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d.Text = "it's $(rm) \x1b[2J"
	if got, want := reject.Line(d), `teamctl approvals reject 3 --feedback 'it'\''s $(rm) \x1b[2J'`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSeen: what a person decides by is in the hash, and what the member does meanwhile is not.
func TestSeen(t *testing.T) {
	t.Parallel()
	a := Request{ID: 3, Kind: NeedPermission, State: "pending", Subject: "Bash: make", Command: "make", Input: []byte(`{"command":"make"}`)}
	b := a
	b.Branch, b.Agent, b.Mode = "x", "claude", "plan"
	if a.Seen() != b.Seen() {
		t.Error("another branch is another request")
	}
	for _, change := range []func(*Request){
		func(r *Request) { r.State = "approved" },
		func(r *Request) { r.Input = []byte(`{"command":"make "}`) },
		func(r *Request) { r.Input = []byte("no json\x00") },
		func(r *Request) { r.Plan = "x" },
		func(r *Request) { r.Questions = []Question{{Text: "?"}} },
	} {
		c := a
		change(&c)
		if c.Seen() == a.Seen() {
			t.Errorf("%+v is not another request", c)
		}
	}
}

package tool

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// interrupter counts the turns that it ends.
type interrupter struct {
	Supervisor
	ended int
}

func (s *interrupter) InterruptMember(context.Context, string) error {
	s.ended++
	return nil
}

// An interrupt rejects the plan that its turn has submitted, and no other request; the next plan is
// accepted.
func TestInterruptRejectsThePlan(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	s := &interrupter{}
	r.Env.Dial = func(context.Context, team.Layout, bool) (Supervisor, error) { return s, nil }
	a, _ := r.memberOf("claude", "a", team.RoleExecutor)
	other := r.as("b", team.RoleExecutor)
	approval := func(a ledger.Approval, err error) ledger.Approval {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	plan := approval(r.AskPlan(ctx, a, PlanIn{Content: "first"}))
	perm := approval(r.AskPermission(ctx, a, PermissionIn{ToolName: "Bash"}))
	its := approval(r.AskPlan(ctx, other, PlanIn{Content: "another's"}))
	mail := len(r.inbox("a"))
	if err := r.Interrupt(ctx, Person(), "a"); err != nil || s.ended != 1 {
		t.Fatal(s.ended, err)
	}
	for id, want := range map[string]ledger.ApprovalState{
		num(plan): ledger.ApprovalRejected, num(perm): ledger.ApprovalPending, num(its): ledger.ApprovalPending,
	} {
		if got := approval(r.Ledger.Approval(ctx, id)); got.State != want {
			t.Errorf("%s of %s: %s, want %s", got.Kind, got.Name, got.State, want)
		}
	}
	if got := approval(r.Ledger.Approval(ctx, num(plan))); got.Feedback != "its turn was interrupted" || got.AnsweredBy != Person().Name {
		t.Errorf("%+v", got)
	}
	if got := len(r.inbox("a")); got != mail {
		t.Errorf("%d more messages to the one that was interrupted", got-mail)
	}
	approval(r.AskPlan(ctx, a, PlanIn{Content: "second"}))
}

// An interrupt of the built-in worker cancels the task that it has claimed, and none that it has
// submitted or that is only assigned to it.
func TestInterruptOfAWorker(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	r.Env.Dial = func(context.Context, team.Layout, bool) (Supervisor, error) {
		return nil, team.Errorf(team.CodeUnavailable, "none")
	}
	w, _ := r.memberOf("worker", "w", team.RoleExecutor)
	_, err := r.TaskAdd(ctx, Person(), TaskAddIn{Tasks: []ledger.NewTask{{Subject: "handed in", Verify: "true"}, {Subject: "in hand", RetryPolicy: ledger.RetryPolicy{MaxRetries: 2}}, {Subject: "assigned"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.TaskClaim(ctx, w, "1"); err != nil {
		t.Fatal(err)
	}
	if task, err := r.TaskComplete(ctx, w, "1", 1, ledger.Result{Summary: "x"}); err != nil || task.Verification == 0 {
		t.Fatalf("%+v, %v", task, err)
	}
	if _, err := r.TaskAssign(ctx, Person(), "3", "w"); err != nil {
		t.Fatal(err)
	}
	if err := r.Interrupt(ctx, Person(), "w"); team.ReasonOf(err) != "no_task" {
		t.Errorf("with nothing in hand: %v", err)
	}
	if _, err := r.TaskClaim(ctx, w, "2"); err != nil {
		t.Fatal(err)
	}
	if err := r.Interrupt(ctx, Person(), "w"); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]team.TaskStatus{"1": team.TaskInProgress, "2": team.TaskFailed, "3": team.TaskPending} {
		if got, err := r.Ledger.Task(ctx, id); err != nil || got.Status != want {
			t.Errorf("task %s is %s (%v), want %s", id, got.Status, err, want)
		}
	}
	if got, err := r.Ledger.Task(ctx, "2"); err != nil || got.Result == nil || got.Result.Error != "canceled by "+Person().Name+": interrupted" {
		t.Errorf("%+v, %v", got.Result, err)
	}
}

// ruler does what is asked, and returns the members as they are.
type ruler struct {
	interrupter
	r talkRig
}

func (s *ruler) members(ctx context.Context, names []string) ([]ledger.Member, error) {
	m, err := s.r.Ledger.Member(ctx, names[0])
	return []ledger.Member{m}, err
}

func (s *ruler) RestartMembers(ctx context.Context, names []string) ([]ledger.Member, error) {
	return s.members(ctx, names)
}

func (s *ruler) PauseMembers(ctx context.Context, names []string, _ bool) ([]ledger.Member, error) {
	return s.members(ctx, names)
}

func (s *ruler) StopMembers(_ context.Context, in team.StopRequest) ([]team.Stopped, error) {
	return []team.Stopped{{Name: in.Names[0]}}, nil
}

// The log names who has ruled a member, and by which door.
func TestRulingIsLogged(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	s := &ruler{r: r}
	r.Env.Dial = func(context.Context, team.Layout, bool) (Supervisor, error) { return s, nil }
	r.memberOf("claude", "a", team.RoleExecutor)
	c := Person()
	c.Door = DoorPage
	for request, do := range map[string]func() error{
		"restart": func() error { _, err := r.Restart(ctx, c, []string{"a"}); return err },
		"pause":   func() error { _, err := r.Pause(ctx, c, []string{"a"}, true); return err },
		"stop":    func() error { _, err := r.Stop(ctx, c, team.StopRequest{Names: []string{"a"}}); return err },
		"kill": func() error {
			_, err := r.Stop(ctx, c, team.StopRequest{Names: []string{"a"}, Force: true})
			return err
		},
		"interrupt": func() error { return r.Interrupt(ctx, c, "a") },
	} {
		before, err := r.Ledger.LastEvent(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := do(); err != nil {
			t.Errorf("%s: %v", request, err)
			continue
		}
		list, err := r.Ledger.Events(ctx, before, 0, ledger.EventFilter{What: team.EventMemberRequested, ID: "a"})
		if err != nil || len(list) != 1 || list[0].After != request || list[0].Who != c.Name || list[0].Via != DoorPage {
			t.Errorf("%s: %+v %v", request, list, err)
		}
	}
}

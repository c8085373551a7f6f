package ledger

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func planOf(name, id string) AskIn {
	return AskIn{RequestID: id, Kind: ApprovePlan, Session: "s-" + name, Subject: "a plan", Message: &NewMessage{
		Kind: team.KindPlanApprovalRequest, From: name, To: team.LeadName, RequestID: id, Text: "{}", Summary: "plan",
	}}
}

func yes(id int64) AnswerIn {
	return AnswerIn{ID: id, Approve: true, By: team.LeadName, Mode: team.ModeAcceptEdits, Message: &NewMessage{
		Kind: team.KindPlanApprovalResponse, From: team.LeadName, Text: "{}",
	}}
}

func TestPlanApproval(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	asked := must[Settled](t)(l.Ask(ctx, planOf("a", "plan-1")))
	ap := asked.Approval
	if ap.State != ApprovalPending || ap.Answerer != AnswererPerson || ap.Name != "a" || ap.Message != asked.Message.ID {
		t.Errorf("%+v", ap)
	}
	if len(asked.Deliveries) != 1 || asked.Deliveries[0].Recipient != team.LeadName {
		t.Errorf("sent to %+v", asked.Deliveries)
	}
	if m := must[Member](t)(l.Member(ctx, "a")); m.Activity != team.Waiting {
		t.Errorf("activity %s", m.Activity)
	}
	// The same request again returns the first one; another plan must wait.
	if again := must[Settled](t)(l.Ask(ctx, planOf("a", "plan-1"))); again.Approval.ID != ap.ID || again.Message != nil {
		t.Errorf("%+v", again)
	}
	_, err := l.Ask(ctx, planOf("a", "plan-2"))
	refused(t, err, team.CodeConflict, team.ReasonPlanPending)
	_, err = l.Ask(ctx, planOf("b", "plan-1"))
	refused(t, err, team.CodeConflict, "request_taken")
	must[Settled](t)(l.Ask(ctx, planOf("b", "plan-3")))

	own := yes(ap.ID)
	own.By = "A"
	_, err = l.Answer(ctx, own)
	refused(t, err, team.CodeDenied, team.ReasonOwnRequest)
	done := must[Settled](t)(l.Answer(ctx, yes(ap.ID)))
	if done.Approval.State != ApprovalApproved || done.Message.To != "a" || done.Message.Parent != ap.Message {
		t.Errorf("%+v", done)
	}
	m := must[Member](t)(l.Member(ctx, "a"))
	if m.Spec.PlanRequired {
		t.Error("it joined without having to plan")
	}
	if m.Spec.Mode != team.ModeAcceptEdits || m.Activity != team.Working {
		t.Errorf("mode %s, activity %s", m.Spec.Mode, m.Activity)
	}
	if d := must[Delivery](t)(l.Delivery(ctx, ap.Message, team.LeadName)); d.State != team.Answered {
		t.Errorf("the request is %s", d.State)
	}
	no := yes(ap.ID)
	no.Approve = false
	_, err = l.Answer(ctx, no)
	refused(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
	must[Settled](t)(l.Ask(ctx, planOf("a", "plan-4"))) // another plan is possible now
}

func TestApprovalIsNoMail(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	for _, k := range []team.Kind{team.KindPermissionRequest, team.KindPermissionResponse, team.KindPlanApprovalRequest, team.KindPlanApprovalResponse} {
		_, _, err := l.Post(ctxFor(t), NewMessage{Kind: k, From: team.LeadName, To: "a", Text: "{}", RequestID: "x"})
		refused(t, err, team.CodeDenied, team.ReasonApprovalOnly)
	}
}

func TestApprovalDeadline(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	c := &clock{at: time.Now()}
	l.now = c.now
	ctx := ctxFor(t)
	in := planOf("a", "plan-1")
	in.Deadline = c.at.Add(time.Minute).UnixMilli()
	ap := must[Settled](t)(l.Ask(ctx, in)).Approval
	late := AnswerIn{ID: ap.ID, Expired: true, By: "supervisor"}
	_, err := l.Answer(ctx, late)
	refused(t, err, team.CodeConflict, "not_yet")
	c.advance(time.Minute)
	_, err = l.Answer(ctx, yes(ap.ID))
	refused(t, err, team.CodeConflict, team.ReasonExpired)
	if got := must[Settled](t)(l.Answer(ctx, late)).Approval.State; got != ApprovalExpired {
		t.Errorf("%s", got)
	}
	if m := must[Member](t)(l.Member(ctx, "a")); m.Spec.Mode != "" || m.Activity != team.Working {
		t.Errorf("%+v", m)
	}
}

// A member that exits can no longer use an answer, so its requests can no
// longer be approved.
func TestApprovalsAreRejectedAtExit(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	exit := must[Settled](t)(l.Ask(ctx, planOf("a", "plan-1"))).Approval
	left := must[Settled](t)(l.Ask(ctx, AskIn{RequestID: "perm-1", Kind: ApprovePermission, Session: "s-b", Subject: "Bash"})).Approval
	must[[]string](t)(l.ReleaseOwner(ctx, "s-a", "a ended: exit 1"))
	ok(t, l.RemoveMember(ctx, "s-b"))
	for id, why := range map[int64]string{exit.ID: "a ended: exit 1", left.ID: "b left the team"} {
		got := must[Approval](t)(l.Approval(ctx, fmt.Sprint(id)))
		if got.State != ApprovalRejected || got.Feedback != why {
			t.Errorf("%+v", got)
		}
		_, err := l.Answer(ctx, yes(id))
		refused(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
	}
	_, err := l.Ask(ctx, planOf("b", "plan-9"))
	refused(t, err, team.CodeDenied, team.ReasonMemberRemoved)
	if diff := cmp.Diff(exit.ID, must[Approval](t)(l.Approval(ctx, "plan-1")).ID); diff != "" {
		t.Error(diff)
	}
	_, err = l.Approval(ctx, "99")
	refused(t, err, team.CodeNotFound, team.ReasonNoApproval)
}

// reviewed returns a team in which rev reviews the work of a, with a completed
// task of a and another task that depends on it.
func reviewed(t *testing.T) (l *Ledger, ref TaskRef, ap Approval) {
	l = newTeam(t, "a")
	ctx := ctxFor(t)
	_, _, err := l.AddMember(ctx, Member{Name: "rev", SessionKey: "s-rev", Role: team.RoleReviewer}, true)
	ok(t, err)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Ref: "w", Subject: "work"}, {Subject: "next", DependsOn: []string{"w"}}}, "lead"))
	task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	ref = TaskRef{ID: task.ID, Owner: "s-a", Attempt: task.Attempt}
	if ready := must[[]string](t)(l.Complete(ctx, ref, Result{Summary: "all green"})); len(ready) != 0 {
		t.Errorf("unblocked %v before the review", ready)
	}
	as := must[[]Approval](t)(l.Approvals(ctx, ApprovalFilter{State: ApprovalPending, Task: "1"}))
	if len(as) != 1 || as[0].Kind != ApproveReview || as[0].Answerer != "reviewer" {
		t.Fatalf("%+v", as)
	}
	return l, ref, as[0]
}

func TestReviewApproved(t *testing.T) {
	t.Parallel()
	l, ref, ap := reviewed(t)
	ctx := ctxFor(t)
	task := must[Task](t)(l.Task(ctx, "1"))
	if task.Status != team.TaskInProgress || task.Review != ap.ID || task.LeaseUntil != 0 {
		t.Errorf("%+v", task)
	}
	// The work is done: neither the exit of its owner nor a later call of the
	// owner undoes it.
	for _, err := range []error{l.Fail(ctx, ref, Result{}), l.Release(ctx, ref), l.Start(ctx, ref)} {
		refused(t, err, team.CodeConflict, team.ReasonInReview)
	}
	must[int64](t)(l.RenewLeases(ctx, []string{"s-a"}, 0))
	ok(t, l.RemoveMember(ctx, "s-a"))
	must[[]string](t)(l.ExpireLeases(ctx))
	if task := must[Task](t)(l.Task(ctx, "1")); task.Review != ap.ID || task.Status != team.TaskInProgress {
		t.Errorf("%+v", task)
	}
	msgs := must[[]Message](t)(l.Messages(ctx, MessageFilter{Recipient: "rev"}))
	if len(msgs) != 1 || msgs[0].From != "a" || msgs[0].RequestID != ap.RequestID {
		t.Errorf("the reviewer is told %+v", msgs)
	}
	must[Settled](t)(l.Answer(ctx, AnswerIn{ID: ap.ID, Approve: true, By: "rev"}))
	task = must[Task](t)(l.Task(ctx, "1"))
	if task.Status != team.TaskCompleted || task.Review != 0 || task.Result.Summary != "all green" {
		t.Errorf("%+v", task)
	}
	if next := must[Task](t)(l.Task(ctx, "2")); len(next.BlockedBy) != 0 {
		t.Errorf("still blocked: %+v", next)
	}
	sound(t, l)
}

func TestReviewRejected(t *testing.T) {
	t.Parallel()
	l, ref, ap := reviewed(t)
	ctx := ctxFor(t)
	must[Settled](t)(l.Answer(ctx, AnswerIn{ID: ap.ID, By: "rev", Feedback: "add tests", Message: &NewMessage{
		Kind: team.KindMessage, From: "rev", Text: "add tests"}}))
	task := must[Task](t)(l.Task(ctx, "1"))
	var meta struct {
		Review struct{ Feedback, By string }
	}
	ok(t, json.Unmarshal(task.Metadata, &meta))
	if task.Status != team.TaskPending || task.Owner != "s-a" || meta.Review.Feedback != "add tests" || meta.Review.By != "rev" {
		t.Errorf("%+v", task)
	}
	refused(t, l.Fail(ctx, ref, Result{}), team.CodeConflict, team.ReasonNotOwner)
	again := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	if again == nil || again.ID != "1" || again.Attempt != 2 {
		t.Fatalf("%+v", again)
	}
	// Without an active reviewer, Complete completes the task at once.
	ok(t, l.RemoveMember(ctx, "s-rev"))
	ready := must[[]string](t)(l.Complete(ctx, TaskRef{ID: "1", Owner: "s-a", Attempt: 2}, Result{}))
	if diff := cmp.Diff([]string{"2"}, ready); diff != "" {
		t.Error(diff)
	}
}

// A task sent back to a member that has ended for good becomes available to
// all.
func TestReviewRejectedAfterTheEnd(t *testing.T) {
	t.Parallel()
	l, _, ap := reviewed(t)
	ctx := ctxFor(t)
	for _, o := range []team.Observed{team.Starting, team.Running, team.Exited, team.Completed} {
		must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", Observed: &o}))
	}
	must[[]string](t)(l.ReleaseOwner(ctx, "s-a", "done"))
	must[Settled](t)(l.Answer(ctx, AnswerIn{ID: ap.ID, By: "rev", Feedback: "add tests"}))
	if task := must[Task](t)(l.Task(ctx, "1")); task.Status != team.TaskPending || task.Owner != "" {
		t.Errorf("%+v", task)
	}
	if got := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-other"})); got == nil || got.ID != "1" {
		t.Errorf("%+v", got)
	}
}

func TestReviewByThePerson(t *testing.T) {
	t.Parallel()
	l, ref, ap := reviewed(t)
	ctx := ctxFor(t)
	ready := must[[]string](t)(l.As(team.LeadName).CompleteReviewed(ctx, ref, Result{Summary: "by hand"}))
	if diff := cmp.Diff([]string{"2"}, ready); diff != "" {
		t.Error(diff)
	}
	if got := must[Approval](t)(l.Approval(ctx, fmt.Sprint(ap.ID))); got.State != ApprovalApproved || got.AnsweredBy != team.LeadName {
		t.Errorf("%+v", got)
	}
}

func TestReviewOfATaskTakenBack(t *testing.T) {
	t.Parallel()
	l, _, ap := reviewed(t)
	ctx := ctxFor(t)
	must[Task](t)(l.Reassign(ctx, "1", "", "lead"))
	if got := must[Approval](t)(l.Approval(ctx, fmt.Sprint(ap.ID))); got.State != ApprovalRejected {
		t.Errorf("%+v", got)
	}
	if task := must[Task](t)(l.Task(ctx, "1")); task.Review != 0 || task.Status != team.TaskPending {
		t.Errorf("%+v", task)
	}
	sound(t, l)
}

// No member reviews its own work, and a member that has ended reviews nothing.
func TestWhoReviews(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		m    Member
		want bool
	}{
		"active":    {Member{Desired: team.WantRunning, Observed: team.Backoff}, true},
		"stopped":   {Member{Desired: team.WantStopped, Observed: team.Completed}, false},
		"gave-up":   {Member{Desired: team.WantRunning, Observed: team.Failed}, false},
		"joined":    {Member{Desired: team.WantStopped, Spec: team.MemberSpec{Agent: team.AgentExternal}}, true},
		"of-itself": {Member{SessionKey: "s-a", Desired: team.WantRunning}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t)
			ctx := ctxFor(t)
			tt.m.Name, tt.m.Role = "rev", team.RoleReviewer
			if tt.m.SessionKey == "" {
				tt.m.SessionKey = "s-rev"
				_, _, err := l.AddMember(ctx, Member{Name: "a", SessionKey: "s-a"}, true)
				ok(t, err)
			}
			_, _, err := l.AddMember(ctx, tt.m, true)
			ok(t, err)
			must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "work"}}, "lead"))
			task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
			must[[]string](t)(l.Complete(ctx, TaskRef{ID: task.ID, Owner: "s-a", Attempt: 1}, Result{}))
			if got := must[Task](t)(l.Task(ctx, task.ID)).Review != 0; got != tt.want {
				t.Errorf("waits for a review: %v", got)
			}
		})
	}
}

// With several writers, each with its own DB, an approval is answered once, and
// a member has one pending plan.
func TestApprovalRaces(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	const writers = 4
	ls := make([]*Ledger, writers)
	for i := range ls {
		db := openAt(t, l.DB().Path())
		ls[i] = New(db, Direct(db))
	}
	together := func(f func(i int, l *Ledger) error) (won int) {
		errs := make(chan error, writers)
		for i, l := range ls {
			go func() { errs <- f(i, l) }()
		}
		for range writers {
			err := <-errs
			if err == nil {
				won++
			} else if team.CodeOf(err) != team.CodeConflict {
				t.Error(err)
			}
		}
		return won
	}
	for round := range 10 {
		if won := together(func(i int, l *Ledger) error {
			_, err := l.Ask(ctx, planOf("a", fmt.Sprintf("plan-%d-%d", round, i)))
			return err
		}); won != 1 {
			t.Fatalf("%d plans wait", won)
		}
		pending := must[[]Approval](t)(l.Approvals(ctx, ApprovalFilter{State: ApprovalPending}))
		if won := together(func(i int, l *Ledger) error {
			in := yes(pending[0].ID)
			in.Approve = i%2 == 0
			_, err := l.Answer(ctx, in)
			return err
		}); won != 1 {
			t.Fatalf("answered %d times", won)
		}
	}
	if n := len(must[[]Message](t)(l.Messages(ctx, MessageFilter{Recipient: "a"}))); n != 10 {
		t.Errorf("the asker got %d answers", n)
	}
	sound(t, l)
}

// PlanRequired remains set after the plan is approved.
func TestPlanRequiredStays(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	ctx := ctxFor(t)
	_, _, err := l.AddMember(ctx, Member{Name: "a", SessionKey: "s-a", Spec: team.MemberSpec{Mode: team.ModePlan}}, true)
	ok(t, err)
	asked := must[Settled](t)(l.Ask(ctx, planOf("a", "plan-1")))
	must[Settled](t)(l.Answer(ctx, yes(asked.Approval.ID)))
	if m := must[Member](t)(l.Member(ctx, "a")); m.Spec.Mode != team.ModeAcceptEdits || !m.Spec.PlanRequired {
		t.Errorf("%+v", m.Spec)
	}
}

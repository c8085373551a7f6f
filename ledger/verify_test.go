package ledger

import (
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// verifying returns a team in which a has completed a task that awaits
// verification, with another task that depends on it.
func verifying(t *testing.T) (l *Ledger, ref TaskRef, v Verification) {
	t.Helper()
	l = newTeam(t, "a", "b")
	ctx := ctxFor(t)
	lives(t, l, "s-a", "claude")
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Ref: "w", Subject: "work", Verify: "make check"}, {Subject: "next", DependsOn: []string{"w"}}}, team.LeadName))
	task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	ref = TaskRef{ID: task.ID, Owner: "s-a", Attempt: task.Attempt}
	if ready := must[[]string](t)(l.Complete(ctx, ref, Result{Summary: "all green"})); len(ready) != 0 {
		t.Errorf("unblocked %v unverified", ready)
	}
	return l, ref, one(t, l)
}

// lives makes a member a running one of the given agent kind.
func lives(t *testing.T, l *Ledger, session, agent string) {
	t.Helper()
	ok(t, sqlExec(t, l.DB(), `UPDATE members SET observed = 'running', spec = json_set(spec, '$.agent', ?) WHERE sessionKey = ?`, agent, session))
}

// one returns the only verification that needs action.
func one(t *testing.T, l *Ledger) Verification {
	t.Helper()
	todo := must[[]Verification](t)(l.Unverified(ctxFor(t)))
	if len(todo) != 1 {
		t.Fatalf("%d verifications: %+v", len(todo), todo)
	}
	return todo[0]
}

// run begins a verification and ends it.
func run(t *testing.T, l *Ledger, v Verification, in VerifyEnd) Verified {
	t.Helper()
	in.ID, in.Generation = v.ID, "gen-1"
	ok(t, l.BeginVerification(ctxFor(t), v.ID, in.Generation, ""))
	return must[Verified](t)(l.EndVerification(ctxFor(t), in))
}

func told(t *testing.T, l *Ledger, who string) (out []Message) {
	t.Helper()
	return must[[]Message](t)(l.Messages(ctxFor(t), MessageFilter{Recipient: who}))
}

func history(t *testing.T, l *Ledger, task string) string {
	t.Helper()
	var whats []string
	for _, e := range must[[]Event](t)(l.Events(ctxFor(t), 0, 0, EventFilter{ID: task, What: "task."})) {
		whats = append(whats, strings.TrimPrefix(e.What, "task."))
	}
	return strings.Join(whats, " ")
}

// Completed work stays with its owner until the result is known, whatever
// happens to the owner.
func TestVerifiedThenCompleted(t *testing.T) {
	t.Parallel()
	l, ref, v := verifying(t)
	ctx := ctxFor(t)
	if v.Task != "1" || v.Attempt != 1 || v.Session != "s-a" || v.Command != "make check" || v.By != team.LeadName || v.Result.Summary != "all green" {
		t.Errorf("%+v", v)
	}
	task := must[Task](t)(l.Task(ctx, "1"))
	if task.Status != team.TaskInProgress || task.Verification != v.ID || task.VerifyBy != team.LeadName {
		t.Errorf("%+v", task)
	}
	_, again := l.Complete(ctx, ref, Result{})
	_, person := l.As(team.LeadName).CompleteReviewed(ctx, ref, Result{})
	for _, err := range []error{again, person, l.Start(ctx, ref)} {
		refused(t, err, team.CodeConflict, team.ReasonVerifying)
	}
	must[int64](t)(l.RenewLeases(ctx, []string{"s-a"}, 0))
	ok(t, sqlExec(t, l.DB(), "UPDATE tasks SET leaseUntil = 1 WHERE id = '1'"))
	must[[]string](t)(l.ExpireLeases(ctx))
	ok(t, l.RemoveMember(ctx, "s-a"))
	if task := must[Task](t)(l.Task(ctx, "1")); task.Verification != v.ID || task.Status != team.TaskInProgress {
		t.Errorf("%+v", task)
	}
	out := run(t, l, v, VerifyEnd{Passed: true})
	if !out.Counts || !slices.Equal(out.Ready, []string{"2"}) || len(out.Mail) != 1 ||
		out.Task.Status != team.TaskCompleted || out.Task.Verification != 0 || out.Task.Result.Summary != "all green" {
		t.Errorf("%+v", out)
	}
	if got := told(t, l, team.LeadName); len(got) != 1 || got[0].Kind != team.KindTaskCompleted {
		t.Errorf("the lead is told %+v", got)
	}
	if got, want := history(t, l, "1"), "created claimed verify verifying verified completed"; got != want {
		t.Errorf("history %q, want %q", got, want)
	}
	if todo := must[[]Verification](t)(l.Unverified(ctx)); len(todo) != 0 {
		t.Errorf("%+v", todo)
	}
	sound(t, l)
}

// The owner of work that failed its verification continues with it, and is
// notified of the reason.
func TestVerifyFailedIsTold(t *testing.T) {
	t.Parallel()
	l, ref, v := verifying(t)
	ctx := ctxFor(t)
	const far = int64(1) << 50 // as the bridge claims
	ok(t, sqlExec(t, l.DB(), "UPDATE tasks SET leaseUntil = ? WHERE id = '1'", far))
	out := run(t, l, v, VerifyEnd{ExitCode: 2, Why: "exit 2", Tail: "FAIL x", Log: "/log"})
	task := must[Task](t)(l.Task(ctx, "1"))
	if !out.Counts || task.Status != team.TaskInProgress || task.Owner != "s-a" || task.Attempt != 1 || task.Verification != 0 || task.LeaseUntil != far || task.Result != nil {
		t.Errorf("%+v", task)
	}
	mail := told(t, l, "a")
	if len(mail) != 1 || len(out.Mail) != 1 || mail[0].ID != out.Mail[0].Message.ID || mail[0].From != team.SystemName || len(out.Mail[0].Deliveries) != 1 {
		t.Fatalf("told %+v", mail)
	}
	for _, want := range []string{"Task #1 is not completed: its verification failed (exit 2): make check\n", "FAIL x", "/log"} {
		if !strings.Contains(mail[0].Text, want) {
			t.Errorf("%q is not in %q", want, mail[0].Text)
		}
	}
	must[[]string](t)(l.Complete(ctx, ref, Result{Summary: "now"}))
	second := one(t, l)
	if second.ID == v.ID {
		t.Fatal("not verified again")
	}
	if out := run(t, l, second, VerifyEnd{Passed: true}); out.Task.Status != team.TaskCompleted || out.Task.Result.Summary != "now" {
		t.Errorf("%+v", out)
	}
	if got := told(t, l, team.LeadName); len(got) != 1 {
		t.Errorf("the lead is told %d times", len(got))
	}
}

// An owner that cannot continue loses the task: that of a built-in worker,
// which reads no mail about it, fails and uses its retries; that of an owner
// that has ended becomes pending.
func TestVerifyFailedOfWhoCannotGoOn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		agent  string
		ends   bool
		gone   bool
		status team.TaskStatus
	}{
		"worker": {agent: "worker", status: team.TaskFailed},
		"ended":  {agent: "claude", ends: true, status: team.TaskPending},
		"gone":   {agent: "claude", gone: true, status: team.TaskPending},
		"joined": {agent: team.AgentExternal, status: team.TaskInProgress},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, v := verifying(t)
			lives(t, l, "s-a", tt.agent)
			if tt.ends || tt.agent == team.AgentExternal {
				ok(t, sqlExec(t, l.DB(), "UPDATE members SET observed = 'exited' WHERE sessionKey = 's-a'"))
				must[[]string](t)(l.ReleaseOwner(ctxFor(t), "s-a", "ended"))
			}
			out := run(t, l, v, VerifyEnd{ExitCode: 1, Why: "exit 1", Tail: "no", Gone: tt.gone})
			if out.Task.Status != tt.status || (out.Task.Owner == "") != (tt.status == team.TaskPending) || (len(out.Mail) == 1) != (tt.status == team.TaskInProgress) {
				t.Errorf("%+v", out)
			}
			if tt.status == team.TaskFailed && (out.Task.Result.ExitCode != 1 || out.Task.Result.Error != "verify failed: exit 1\nno") {
				t.Errorf("%+v", out.Task.Result)
			}
			sound(t, l)
		})
	}
}

// The result of a run that is no longer awaited changes nothing.
func TestVerifyIsFenced(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(l *Ledger, ref TaskRef) error{
		"released": func(l *Ledger, ref TaskRef) error { return l.Release(background, ref) },
		"failed":   func(l *Ledger, ref TaskRef) error { return l.Fail(background, ref, Result{Error: "no"}) },
		"assigned": func(l *Ledger, ref TaskRef) error {
			_, err := l.Reassign(background, ref.ID, "s-b", team.LeadName)
			return err
		},
		"again": func(l *Ledger, ref TaskRef) error { // the same owner, in its next attempt
			if err := l.As("a").Release(background, ref); err != nil {
				return err
			}
			task, err := l.Claim(background, ClaimIn{Owner: "s-a"})
			if err == nil {
				_, err = l.Complete(background, TaskRef{task.ID, task.Owner, task.Attempt}, Result{})
			}
			return err
		},
		"changed": func(l *Ledger, ref TaskRef) error {
			_, err := l.UpdateTask(background, TaskPatch{ID: ref.ID, By: team.LeadName, Verify: ptr("make all")})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, ref, v := verifying(t)
			ctx := ctxFor(t)
			ok(t, l.BeginVerification(ctx, v.ID, "g", "/place"))
			ok(t, take(l, ref))
			before := must[Task](t)(l.Task(ctx, "1"))
			todo := must[[]Verification](t)(l.Unverified(ctx))
			if todo[0].State != VerifyDropped || todo[0].Generation != "g" || todo[0].Place != "/place" {
				t.Errorf("what runs is not to be found: %+v", todo)
			}
			out := must[Verified](t)(l.EndVerification(ctx, VerifyEnd{ID: v.ID, Generation: "g", Passed: true}))
			if after := must[Task](t)(l.Task(ctx, "1")); out.Counts || after.Status != before.Status || after.Verification != before.Verification || after.Owner != before.Owner {
				t.Errorf("%+v, was %+v", after, before)
			}
			todo = must[[]Verification](t)(l.Unverified(ctx))
			if waits := name == "again" || name == "changed"; waits != (len(todo) == 1) || waits && (todo[0].ID != before.Verification || todo[0].Generation != "") {
				t.Errorf("to be done: %+v", todo)
			}
			refused(t, l.BeginVerification(ctx, v.ID, "h", ""), team.CodeConflict, team.ReasonBadStatus)
			sound(t, l)
		})
	}
}

// There is one run at a time, and a run whose runner was killed can be begun
// again.
func TestVerifyIsBegunOnce(t *testing.T) {
	t.Parallel()
	l, _, v := verifying(t)
	ctx := ctxFor(t)
	ok(t, l.BeginVerification(ctx, v.ID, "g", ""))
	refused(t, l.BeginVerification(ctx, v.ID, "h", ""), team.CodeConflict, team.ReasonBadStatus)
	ok(t, l.AbandonVerification(ctx, v.ID, "other"))
	refused(t, l.BeginVerification(ctx, v.ID, "h", ""), team.CodeConflict, team.ReasonBadStatus)
	ok(t, l.AbandonVerification(ctx, v.ID, "g"))
	if out := must[Verified](t)(l.EndVerification(ctx, VerifyEnd{ID: v.ID, Generation: "g", Passed: true})); out.Counts {
		t.Errorf("the word of a run that was abandoned counts: %+v", out)
	}
	if out := run(t, l, v, VerifyEnd{Passed: true}); !out.Counts {
		t.Errorf("%+v", out)
	}
}

// A task whose command is removed is completed; a replaced command is run.
func TestVerifyTakenAway(t *testing.T) {
	t.Parallel()
	l, _, v := verifying(t)
	ctx := ctxFor(t)
	task := must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "1", By: team.LeadName, Verify: ptr("")}))
	if task.Status != team.TaskCompleted || task.Result.Summary != "all green" || task.VerifyBy != "" || task.Verification != 0 {
		t.Errorf("%+v", task)
	}
	refused(t, l.BeginVerification(ctx, v.ID, "g", ""), team.CodeConflict, team.ReasonBadStatus)
	sound(t, l)
}

// Verification comes before review: neither completion by a person nor the
// reviewer's approval replaces it.
func TestVerifyAndReview(t *testing.T) {
	t.Parallel()
	l, _, v := verifying(t)
	ctx := ctxFor(t)
	_, _, err := l.AddMember(ctx, Member{Name: "rev", SessionKey: "s-rev", Role: team.RoleReviewer}, true)
	ok(t, err)
	out := run(t, l, v, VerifyEnd{Passed: true})
	if out.Task.Review == 0 || out.Task.Status != team.TaskInProgress || out.Task.Verification != 0 || len(told(t, l, "rev")) != 1 {
		t.Fatalf("%+v", out.Task)
	}
	// A command set during the review is run after it.
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "1", By: team.LeadName, Verify: ptr("make more")}))
	must[Settled](t)(l.Answer(ctx, AnswerIn{ID: out.Task.Review, Approve: true, By: "rev"}))
	v = one(t, l)
	if task := must[Task](t)(l.Task(ctx, "1")); !v.Reviewed || v.Command != "make more" || task.Review != 0 || task.Verification != v.ID {
		t.Fatalf("%+v, %+v", v, task)
	}
	if out := run(t, l, v, VerifyEnd{Passed: true}); out.Task.Status != team.TaskCompleted || out.Task.Result.Summary != "all green" {
		t.Errorf("%+v", out.Task)
	}
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "by hand", Verify: "true"}}, team.LeadName))
	task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "3"}))
	must[[]string](t)(l.As(team.LeadName).CompleteReviewed(ctx, ref(task), Result{}))
	if v := one(t, l); v.Task != "3" || !v.Reviewed {
		t.Fatalf("%+v", v)
	} else if out := run(t, l, v, VerifyEnd{Passed: true}); out.Task.Status != team.TaskCompleted {
		t.Errorf("%+v", out.Task)
	}
	sound(t, l)
}

// Work returned by its review is verified again, even if the command has passed
// once; approved work is not.
func TestVerifyAfterARejectedReview(t *testing.T) {
	t.Parallel()
	l, _, v := verifying(t)
	ctx := ctxFor(t)
	_, _, err := l.AddMember(ctx, Member{Name: "rev", SessionKey: "s-rev", Role: team.RoleReviewer}, true)
	ok(t, err)
	out := run(t, l, v, VerifyEnd{Passed: true})
	must[Settled](t)(l.Answer(ctx, AnswerIn{ID: out.Task.Review, By: "rev", Feedback: "not so"}))
	task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: out.Task.ID})) // a new attempt, because it was sent back
	must[[]string](t)(l.Complete(ctx, ref(task), Result{Summary: "otherwise"}))
	again := one(t, l)
	if again.ID == v.ID || again.Reviewed || again.Result.Summary != "otherwise" {
		t.Fatalf("%+v", again)
	}
	out = run(t, l, again, VerifyEnd{Passed: true})
	must[Settled](t)(l.Answer(ctx, AnswerIn{ID: out.Task.Review, Approve: true, By: "rev"}))
	if task := must[Task](t)(l.Task(ctx, out.Task.ID)); task.Status != team.TaskCompleted || task.Result.Summary != "otherwise" {
		t.Errorf("%+v", task)
	}
	if vs := verificationsOf(t, l, out.Task.ID); len(vs) != 2 {
		t.Errorf("%+v", vs)
	}
	sound(t, l)
}

// An owner that has run the command itself is done; one that has run another
// command is not.
func TestVerifiedByItsOwner(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "x", Verify: "true"}, {Subject: "y", Verify: "true"}}, team.LeadName))
	for i, command := range []string{"true", "false"} {
		task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
		must[[]string](t)(l.CompleteVerified(ctx, ref(task), Result{}, command))
		if got := must[Task](t)(l.Task(ctx, task.ID)); (got.Status == team.TaskCompleted) != (i == 0) || (got.Verification != 0) != (i == 1) {
			t.Errorf("%+v", got)
		}
	}
	if vs := verificationsOf(t, l, "1"); len(vs) != 1 || vs[0].State != VerifyPassed || vs[0].EndedAt == 0 {
		t.Errorf("%+v", vs)
	}
}

// The command of an older board is run only if it is known to be the lead's.
func TestVerifyOfAnOlderBoard(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/ledger.db"
	old, err := open(ctxFor(t), path, Options{Create: true}, migrations()[:14])
	ok(t, err)
	for _, q := range []string{
		`INSERT INTO tasks(id, subject, description, status, createdAt, verify) VALUES ('1', 'a', '', 'pending', 1, 'true'), ('2', 'b', '', 'pending', 1, 'true'),
			('3', 'c', '', 'pending', 1, 'true'), ('4', 'd', '', 'pending', 1, ''), ('5', 'e', '', 'pending', 1, 'true')`,
		`INSERT INTO events(at, who, what, id, before, after) VALUES (1, 'team-lead', 'task.created', '1', '', 'pending'), (1, 'ann', 'task.created', '2', '', 'pending'),
			(1, 'team-lead', 'task.created', '3', '', 'pending'), (1, 'ann', 'task.updated', '3', '{}', '{"verify":"true"}'),
			(1, 'ann', 'task.updated', '1', '{}', '{"subject":"a"}'), (1, 'team-lead', 'task.created', '4', '', 'pending')`,
	} {
		ok(t, sqlExec(t, old, q))
	}
	ok(t, old.Close())
	db := openAt(t, path)
	if got := sqlRow[string](t, db, "SELECT group_concat(id || verifyBy, ' ') FROM tasks"); got != "1team-lead 2 3 4 5" {
		t.Errorf("%q", got)
	}
}

// Verifications are pruned with a task's old history, except for tasks in
// progress and running ones.
func TestVerificationsArePruned(t *testing.T) {
	t.Parallel()
	l, ref, v := verifying(t)
	ctx := ctxFor(t)
	run(t, l, v, VerifyEnd{Why: "exit 1"})
	prune := func() int {
		t.Helper()
		ok(t, sqlExec(t, l.DB(), "UPDATE verifications SET endedAt = 1 WHERE endedAt > 0"))
		must[Pruned](t)(l.Prune(ctx, PruneMark{Before: 2}))
		return len(verificationsOf(t, l, "1"))
	}
	if n := prune(); n != 1 {
		t.Errorf("%d are left of a task in work", n)
	}
	must[[]string](t)(l.Complete(ctx, ref, Result{}))
	v = one(t, l)
	ok(t, l.BeginVerification(ctx, v.ID, "g", ""))
	ok(t, l.Release(ctx, ref))
	if n := prune(); n != 1 {
		t.Errorf("%d are left, one of them may run", n)
	}
	ok(t, l.AbandonVerification(ctx, v.ID, "g"))
	if n := prune(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// verificationsOf lists every verification of a task, oldest first.
func verificationsOf(t *testing.T, l *Ledger, task string) []Verification {
	t.Helper()
	return must[[]Verification](t)(read(ctxFor(t), l.db, "read the verifications of task "+task, scanVerification,
		`SELECT `+verifyCols+` FROM verifications WHERE task = ? ORDER BY id`, task))
}

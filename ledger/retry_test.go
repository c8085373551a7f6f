package ledger

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// claimAndFail claims the next task and fails it.
func claimAndFail(t *testing.T, l *Ledger, why string) *Task {
	t.Helper()
	task := must[*Task](t)(l.Claim(ctxFor(t), ClaimIn{Owner: "s-a"}))
	if task == nil {
		t.Fatal("no task is ready")
	}
	ok(t, l.Fail(ctxFor(t), ref(task), Result{Error: why}))
	return task
}

func TestRetriesWithBackoffAndCap(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	c := &clock{time.UnixMilli(1_000_000_000)}
	l.now = c.now
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{
		{Subject: "flaky", RetryPolicy: RetryPolicy{MaxRetries: 3, RetryBackoff: 1000}},
	}, "lead"))
	for n, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		claimAndFail(t, l, "try again")
		now := must[Task](t)(l.Task(ctx, "1"))
		if now.Status != team.TaskPending || now.Retries != n+1 || now.NotBefore != c.at.Add(wait).UnixMilli() || now.Result != nil {
			t.Fatalf("after failure %d: %+v", n+1, now)
		}
		if k := must[Counts](t)(l.Counts(ctx)); k.Pending != 1 || k.Ready != 0 {
			t.Errorf("ready before its time: %+v", k)
		}
		if early := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"})); early != nil {
			t.Fatalf("claimed before its time: %+v", early)
		}
		_, err := l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "1"})
		refused(t, err, team.CodeConflict, team.ReasonNotYet)
		c.advance(wait)
		if k := must[Counts](t)(l.Counts(ctx)); k.Ready != 1 {
			t.Errorf("not ready when its time has come: %+v", k)
		}
	}
	claimAndFail(t, l, "given up")
	now := must[Task](t)(l.Task(ctx, "1"))
	if now.Status != team.TaskFailed || now.Result == nil || now.Result.Error != "given up" || now.Attempt != 4 {
		t.Fatalf("after the last retry: %+v", now)
	}
	// A retry by a person restores all of its retries.
	ok(t, l.RetryTask(ctx, "1"))
	claimAndFail(t, l, "again")
	if now := must[Task](t)(l.Task(ctx, "1")); now.Status != team.TaskPending || now.Retries != 1 {
		t.Errorf("after the person's retry: %+v", now)
	}
	ok(t, l.RetryTask(ctx, "1")) // skips the wait
	if task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"})); task == nil || task.NotBefore != 0 {
		t.Errorf("a person does not have to wait: %+v", task)
	}
	sound(t, l)
}

// A waiting task does not delay ready ones, and keeps its position once it is
// due.
func TestWaitingTaskLetsOthersPass(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	c := &clock{time.UnixMilli(1_000_000_000)}
	l.now = c.now
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{
		{Subject: "first", Priority: 9, RetryPolicy: RetryPolicy{MaxRetries: 1}}, {Subject: "second"}, {Subject: "third"},
	}, "lead"))
	claimAndFail(t, l, "x")
	if task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"})); task.ID != "2" {
		t.Errorf("claimed %s", task.ID)
	}
	c.advance(DefaultBackoff)
	if task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"})); task.ID != "1" {
		t.Errorf("claimed %s, though the first is the most urgent", task.ID)
	}
}

func TestRetryPolicyOfMetadata(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	for _, tt := range []struct {
		meta   string
		fields RetryPolicy
		want   RetryPolicy
		code   team.Code
	}{
		{meta: `{"maxRetries":2,"retryBackoff":500}`, want: RetryPolicy{2, 500}},
		{meta: `{"maxRetries":2}`, fields: RetryPolicy{1, 0}, want: RetryPolicy{1, 0}},
		{meta: `{"other":1}`},
		{meta: `{"maxRetries":"two"}`, code: team.CodeInvalid},
		{meta: `{"maxRetries":-1}`, code: team.CodeInvalid},
		{meta: `{"maxRetries":1000}`, code: team.CodeLimit},
		{meta: `{"retryBackoff":86400000}`, code: team.CodeLimit},
	} {
		made, err := l.CreateTasks(ctxFor(t), []NewTask{{Subject: "s", Metadata: raw(tt.meta), RetryPolicy: tt.fields}}, "lead")
		if tt.code != "" {
			if team.CodeOf(err) != tt.code {
				t.Errorf("%s: %v", tt.meta, err)
			}
			continue
		}
		ok(t, err)
		if got := must[Task](t)(l.Task(ctxFor(t), made[0].ID)).RetryPolicy; got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.meta, got, tt.want)
		}
	}
}

func TestBackoffIsCapped(t *testing.T) {
	t.Parallel()
	p := RetryPolicy{MaxRetries: 100, RetryBackoff: 60_000}
	if got := p.backoff(90); got != MaxBackoff.Milliseconds() {
		t.Errorf("%d ms", got)
	}
}

// No process writes when a task becomes due, but the watch reports it.
func TestWatchTellsOfADueTask(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "s", RetryPolicy: RetryPolicy{MaxRetries: 1, RetryBackoff: 300}}}, "lead"))
	wakes, stop, err := l.Changes(ctx)
	ok(t, err)
	defer stop()
	claimAndFail(t, l, "x")
	for {
		select {
		case <-wakes:
			if k := must[Counts](t)(l.Counts(ctx)); k.Ready == 1 {
				return
			}
		case <-ctx.Done():
			t.Fatal("nobody was told")
		}
	}
}

// A task is reported as due even if the watch looks only after that for the first time.
func TestWatchIsLate(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	w := &watch{db: l.db, told: time.Now().UnixMilli()}
	ok(t, w.connect(ctx))
	defer func() { ok(t, w.close()) }()
	c := &consumer{out: make(chan struct{}, 1)}
	l.db.mu.Lock()
	l.db.consumers[c] = struct{}{}
	l.db.mu.Unlock()
	defer l.db.forget(c)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "s", RetryPolicy: RetryPolicy{MaxRetries: 1, RetryBackoff: 20}}}, "lead"))
	claimAndFail(t, l, "x")
	for must[Counts](t)(l.Counts(ctx)).Ready == 0 {
		ok(t, ctx.Err())
	}
	for woken(c.out) { // of its commits
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	if w.armDue(timer); !woken(c.out) {
		t.Error("nobody was told")
	}
	if w.armDue(timer); woken(c.out) {
		t.Error("it was told twice")
	}
}

func TestAutoClaimSwitch(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, make12(), "lead"))
	claim := func(who string) string {
		t.Helper()
		task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-" + who}))
		if task == nil {
			return ""
		}
		return task.ID
	}
	ok(t, l.SetAutoClaim(ctx, "", false))
	if id := claim("a"); id != "" {
		t.Errorf("took %s by itself", id)
	}
	if id := claim(team.LeadName); id != "1" {
		t.Errorf("the lead is not bound: %q", id)
	}
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "3", Owner: ptr("s-a")}))
	if id := claim("a"); id != "3" {
		t.Errorf("what is assigned is taken: %q", id)
	}
	if task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "2"})); task == nil {
		t.Error("what is asked for by its id is given")
	}
	ok(t, l.SetAutoClaim(ctx, "b", true))
	if id := claim("b"); id != "4" {
		t.Errorf("b may: %q", id)
	}
	if a := must[AutoClaim](t)(l.AutoClaim(ctx)); !a.Off || !a.On("b") || a.On("a") {
		t.Errorf("%+v", a)
	}
	ok(t, l.SetAutoClaim(ctx, "", true))
	if id := claim("a"); id != "5" {
		t.Errorf("on again: %q", id)
	}
}

func TestAgentBusy(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, make12(), "lead"))
	one := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", OneOnly: true}))
	_, err := l.Claim(ctx, ClaimIn{Owner: "s-a", OneOnly: true})
	refused(t, err, team.CodeConflict, team.ReasonAgentBusy)
	_, err = l.Claim(ctx, ClaimIn{Owner: "s-a", ID: one.ID, OneOnly: true})
	refused(t, err, team.CodeConflict, team.ReasonAlreadyClaimed)
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"})) // only if requested
}

func TestReassign(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, make12(), "lead"))
	held := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	now := must[Task](t)(l.Reassign(ctx, held.ID, "s-b", "lead"))
	if now.Status != team.TaskPending || now.OwnerName != "b" {
		t.Fatalf("%+v", now)
	}
	_, err := l.Complete(ctx, ref(held), Result{})
	refused(t, err, team.CodeConflict, team.ReasonNotOwner)
	if task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-b"})); task.ID != held.ID || task.Attempt != 2 {
		t.Errorf("%+v", task)
	}
	must[Task](t)(l.Reassign(ctx, held.ID, "", "lead"))
	if task := must[Task](t)(l.Task(ctx, held.ID)); task.Owner != "" || task.Status != team.TaskPending {
		t.Errorf("%+v", task)
	}
	_, err = l.Reassign(ctx, "2", "s-nobody", "lead")
	refused(t, err, team.CodeNotFound, team.ReasonMemberNotFound)
	ok(t, l.Fail(ctx, TaskRef{ID: "2"}, Result{Error: "no"}))
	_, err = l.Reassign(ctx, "2", "s-a", "lead")
	refused(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
	sound(t, l)
}

// A new owner and the message to it are one change; if one is refused, neither
// is made.
func TestAssignTells(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, make12(), "lead"))
	held := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	tell := NewMessage{Kind: team.KindTaskAssignment, From: "a", To: "b", ToSession: "s-b", Text: "{}"}
	task, msg, ds, err := l.Assign(ctx, held.ID, "s-b", "a", tell)
	ok(t, err)
	if task.ID != held.ID || task.OwnerName != "b" || task.Status != team.TaskPending {
		t.Errorf("%+v", task)
	}
	if got := must[Message](t)(l.Message(ctx, msg.ID)); got.Kind != team.KindTaskAssignment || got.To != "b" || len(ds) != 1 || ds[0].State != team.Posted {
		t.Errorf("%+v %+v", got, ds)
	}
	count := func() int {
		return len(must[[]Message](t)(l.Messages(ctx, MessageFilter{Kind: team.KindTaskAssignment})))
	}
	tell.To, tell.ToSession = "a", "s-of-another"
	_, _, _, err = l.Assign(ctx, held.ID, "s-a", "b", tell)
	if err == nil {
		t.Error("told a session that is not there")
	}
	if now := must[Task](t)(l.Task(ctx, held.ID)); now.OwnerName != "b" {
		t.Errorf("it was reassigned untold: %+v", now)
	}
	_, _, _, err = l.Assign(ctx, "99", "s-b", "a", tell)
	refused(t, err, team.CodeNotFound, team.ReasonTaskNotFound)
	if n := count(); n != 1 {
		t.Errorf("%d assignments were told", n)
	}
	sound(t, l)
}

// olderWriter is a supervisor that ignores the message in a reassignment.
type olderWriter struct{ Writer }

func (w olderWriter) Write(ctx context.Context, op Op) (json.RawMessage, error) {
	if op.Name == opTaskReassign {
		var a struct{ ID, Owner, By string }
		if err := json.Unmarshal(op.Args, &a); err != nil {
			return nil, err
		}
		op.Args = raw(mustJSON(map[string]string{"id": a.ID, "owner": a.Owner, "by": a.By}))
	}
	return w.Writer.Write(ctx, op)
}

func TestAssignThroughAnOlderSupervisor(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "s"}}, "lead"))
	l = l.As("lead")
	l.w = olderWriter{l.w}
	task, msg, ds, err := l.Assign(ctx, "1", "s-a", team.LeadName, NewMessage{Kind: team.KindTaskAssignment, From: team.LeadName, To: "a", Text: "{}"})
	ok(t, err)
	if task.OwnerName != "a" || must[Message](t)(l.Message(ctx, msg.ID)).To != "a" || len(ds) != 1 {
		t.Errorf("%+v %+v %+v", task, msg, ds)
	}
}

// The log of a task contains every change with the values before and after.
func TestHistoryIsComplete(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "old", Description: "d", Metadata: raw(`{"k":1}`)}, {Subject: "dep"}}, "lead"))
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "1", By: "lead", Subject: ptr("new"), Description: ptr("long"), Metadata: raw(`{"k":null,"n":2}`)}))
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "1", By: "lead", Subject: ptr("new")})) // nothing changed: no event
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "1", By: "lead", Owner: ptr("s-a")}))
	must[Task](t)(l.AddDeps(ctx, "1", []string{"2"}, "lead"))
	must[Task](t)(l.RemoveDeps(ctx, "1", []string{"2"}, "lead"))
	task := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	ok(t, l.Start(ctx, ref(task)))
	ok(t, l.As("a").Release(ctx, ref(task)))
	task = must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-b", ID: "1"}))
	must[[]string](t)(l.Complete(ctx, ref(task), Result{Summary: "done"}))
	var got []string
	for _, e := range must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{ID: "1", What: "task."})) {
		got = append(got, strings.Join([]string{e.Who, e.What, e.Before, e.After}, " | "))
	}
	want := []string{
		"lead | task.created |  | pending",
		`lead | task.updated | {"description":"d","metadata":{"k":1},"subject":"old"} | {"description":"long","metadata":{"n":2},"subject":"new"}`,
		`lead | task.assigned | {"owner":""} | {"owner":"a"}`,
		`lead | task.deps | [] | ["2"]`,
		`lead | task.deps | ["2"] | []`,
		"lead | task.unblocked | pending | pending",
		"a | task.claimed | pending | claimed",
		"a | task.started | claimed | in_progress",
		"a | task.released | in_progress | pending",
		"b | task.claimed | pending | claimed",
		"b | task.completed | claimed | completed",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

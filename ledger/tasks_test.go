package ledger

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func TestCreateTasks(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	want := []NewTask{
		{Ref: "vet", Subject: "vet", Description: "d", ActiveForm: "vetting", Metadata: raw(`{"run":"go vet","n":{"x":[1,2]}}`), Priority: 3, Verify: "true"},
		{Subject: "sum", DependsOn: []string{"late", "vet", "vet"}}, // refs may point forward, and duplicates count once
		{Ref: "late", Subject: "late"},
	}
	made := must[[]Task](t)(l.CreateTasks(ctx, want, "team-lead"))
	read := must[[]Task](t)(l.Tasks(ctx, TaskFilter{}))
	if diff := cmp.Diff(read, made); diff != "" {
		t.Errorf("returned and stored differ:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"3", "1"}, read[1].BlockedBy); diff != "" {
		t.Error(diff)
	}
	if got := sqlRow[string](t, l.DB(), "SELECT dependsOn || blockedBy || unmet FROM tasks WHERE id = '2'"); got != `["3","1"]["3","1"]2` {
		t.Errorf("columns: %s", got)
	}
	if got := string(read[0].Metadata); got != string(want[0].Metadata) {
		t.Errorf("metadata %s", got)
	}
	if got := must[Counts](t)(l.Counts(ctx)); got != (Counts{Pending: 3, Ready: 2}) {
		t.Errorf("%+v", got)
	}
}

func TestCreateTasksRefuses(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "there"}}, "lead"))
	long := func(n int) string { return strings.Repeat("ä", n) }
	tests := []struct {
		name   string
		batch  []NewTask
		code   team.Code
		reason string
		says   string
	}{
		{"no subject", []NewTask{{Subject: " "}}, team.CodeInvalid, "", "subject"},
		{"subject", []NewTask{{Subject: long(201)}}, team.CodeLimit, "too_long", "201"},
		{"description", []NewTask{{Subject: "s", Description: long(10_001)}}, team.CodeLimit, "too_long", "10000"},
		{"activeForm", []NewTask{{Subject: "s", ActiveForm: long(101)}}, team.CodeLimit, "too_long", "activeForm"},
		{"metadata", []NewTask{{Subject: "s", Metadata: raw(`[1]`)}}, team.CodeInvalid, "", "object"},
		{"unknown", []NewTask{{Subject: "s", DependsOn: []string{"99"}}}, team.CodeNotFound, team.ReasonTaskNotFound, "99"},
		{"an id of the batch", []NewTask{{Subject: "s"}, {Subject: "t", DependsOn: []string{"2"}}}, team.CodeNotFound, team.ReasonTaskNotFound, "2"},
		{"self", []NewTask{{Ref: "a", Subject: "s", DependsOn: []string{"a"}}}, team.CodeInvalid, team.ReasonCycle, "a -> a"},
		{"cycle", []NewTask{
			{Ref: "z", Subject: "s", DependsOn: []string{"a"}},
			{Ref: "a", Subject: "s", DependsOn: []string{"1", "b"}},
			{Ref: "b", Subject: "s", DependsOn: []string{"a"}},
		}, team.CodeInvalid, team.ReasonCycle, "a -> b -> a"},
		{"two of one ref", []NewTask{{Ref: "a", Subject: "s"}, {Ref: "a", Subject: "s"}}, team.CodeInvalid, "", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := l.CreateTasks(ctx, append([]NewTask{{Subject: "first"}}, tt.batch...), "lead")
			refused(t, err, tt.code, tt.reason)
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
		})
	}
	if n := must[Counts](t)(l.Counts(ctx)).Total(); n != 1 {
		t.Errorf("%d tasks: a refused batch left some", n)
	}
	made := must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: long(200), Description: long(10_000), ActiveForm: long(100)}}, "lead"))
	if made[0].ID != "2" {
		t.Errorf("id %s", made[0].ID)
	}
}

func TestTaskLife(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	c := &clock{time.UnixMilli(1_000_000)}
	l.now = c.now
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Ref: "x", Subject: "x"}, {Ref: "y", Subject: "y", DependsOn: []string{"x"}}, {Subject: "z", DependsOn: []string{"y"}}}, "team-lead"))
	c.advance(time.Second)
	x := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	if x.ID != "1" || x.Status != team.TaskClaimed || x.Owner != "s-a" || x.OwnerName != "a" || x.Attempt != 1 ||
		x.ClaimedAt != 1_001_000 || x.LeaseUntil != 1_001_000+Lease.Milliseconds() {
		t.Fatalf("%+v", x)
	}
	if none := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-b"})); none != nil {
		t.Fatalf("claimed a blocked task: %+v", none)
	}
	c.advance(time.Second)
	ok(t, l.Start(ctx, ref(x)))
	ok(t, l.Start(ctx, ref(x)))
	c.advance(time.Second)
	res := Result{Summary: "done", Commit: "abc", Files: []string{"f"}}
	if ready := must[[]string](t)(l.Complete(ctx, ref(x), res)); !cmp.Equal(ready, []string{"2"}) {
		t.Errorf("ready: %v", ready)
	}
	got := must[Task](t)(l.Task(ctx, "1"))
	want := *x
	want.Status, want.LeaseUntil, want.StartedAt, want.CompletedAt, want.Result = team.TaskCompleted, 0, 1_002_000, 1_003_000, &res
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if z := must[Task](t)(l.Task(ctx, "3")); !cmp.Equal(z.BlockedBy, []string{"2"}) {
		t.Errorf("one step at a time: %v", z.BlockedBy)
	}
	// A failed task keeps blocking until it is retried.
	y := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-b", ID: "2"}))
	ok(t, l.Fail(ctx, ref(y), Result{ExitCode: 3, Error: "boom"}))
	if n := must[Counts](t)(l.Counts(ctx)); n != (Counts{Pending: 1, Completed: 1, Failed: 1, Stuck: 1}) {
		t.Errorf("%+v", n)
	}
	ok(t, l.RetryTask(ctx, "2"))
	y = must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-b"}))
	if y.Attempt != 2 || y.Result != nil {
		t.Errorf("%+v", y)
	}
	ok(t, l.As("b").Release(ctx, ref(y)))
	freed := must[Task](t)(l.Task(ctx, "2"))
	if freed.Status != team.TaskPending || freed.Owner != "" || freed.ClaimedAt != 0 || freed.Attempt != 2 {
		t.Errorf("%+v", freed)
	}
	var what []string
	for _, e := range must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{What: "task.", ID: "2"})) {
		what = append(what, e.Who+" "+e.What+" "+e.Before+">"+e.After)
	}
	if diff := cmp.Diff([]string{
		"team-lead task.created >pending", "a task.unblocked pending>pending", "b task.claimed pending>claimed",
		"b task.failed claimed>failed", "supervisor task.retried failed>pending", "b task.claimed pending>claimed", "b task.released claimed>pending",
	}, what); diff != "" {
		t.Error(diff)
	}
	sound(t, l)
}

func TestClaimByIDRefuses(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b", "gone")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "claimed"}, {Subject: "done"}, {Subject: "failed"}, {Subject: "blocked", DependsOn: []string{}}, {Subject: "assigned"}}, "lead"))
	must[Task](t)(l.AddDeps(ctx, "4", []string{"1"}, "lead"))
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "1"}))
	must[[]string](t)(l.Complete(ctx, ref(must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "2"}))), Result{}))
	ok(t, l.Fail(ctx, TaskRef{ID: "3"}, Result{}))
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "5", Owner: ptr("s-a")}))
	ok(t, l.RemoveMember(ctx, "s-gone"))
	for _, tt := range []struct {
		id, owner string
		code      team.Code
		reason    string
	}{
		{"1", "s-b", team.CodeConflict, team.ReasonAlreadyClaimed},
		{"1", "s-a", team.CodeConflict, team.ReasonAlreadyClaimed},
		{"2", "s-b", team.CodeConflict, team.ReasonAlreadyResolved},
		{"3", "s-b", team.CodeConflict, team.ReasonAlreadyResolved},
		{"4", "s-b", team.CodeConflict, team.ReasonBlocked},
		{"5", "s-b", team.CodeConflict, team.ReasonAlreadyClaimed},
		{"9", "s-b", team.CodeNotFound, team.ReasonTaskNotFound},
		{"../x", "s-b", team.CodeNotFound, team.ReasonTaskNotFound},
		{"5", "s-gone", team.CodeDenied, team.ReasonMemberRemoved},
		{"5", "", team.CodeInvalid, ""},
	} {
		_, err := l.Claim(ctx, ClaimIn{Owner: tt.owner, ID: tt.id})
		if err == nil {
			t.Errorf("claimed %s for %s", tt.id, tt.owner)
			continue
		}
		refused(t, err, tt.code, tt.reason)
	}
	_, err := l.Claim(ctx, ClaimIn{Owner: "s-b", ID: "1"})
	if err.Error() != "Task already claimed by another agent" {
		t.Errorf("text: %v", err)
	}
	if got := must[Task](t)(l.Task(ctx, "1")); got.Owner != "s-a" || got.Attempt != 1 {
		t.Errorf("a loser changed the task: %+v", got)
	}
}

func TestClaimOrder(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "1"}, {Subject: "2", Priority: 5}, {Subject: "3"}, {Subject: "4", Priority: 5}, {Subject: "5"}, {Subject: "6", Priority: -1}}, "lead"))
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "5", Owner: ptr("s-b")}))
	var got []string
	for _, owner := range []string{"s-a", "s-b", "s-b", "s-a", "s-a", "s-a"} {
		got = append(got, must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: owner})).ID)
	}
	if diff := cmp.Diff([]string{"2", "5", "4", "1", "3", "6"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFence(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "x"}}, "lead"))
	first := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	writes := map[string]func(TaskRef) error{
		"start":    func(r TaskRef) error { return l.Start(ctx, r) },
		"complete": func(r TaskRef) error { _, err := l.Complete(ctx, r, Result{}); return err },
		"fail":     func(r TaskRef) error { return l.Fail(ctx, r, Result{}) },
		"release":  func(r TaskRef) error { return l.Release(ctx, r) },
	}
	all := func(r TaskRef, code team.Code, reason string) {
		t.Helper()
		for _, write := range writes {
			refused(t, write(r), code, reason)
		}
	}
	all(TaskRef{"1", "s-b", 1}, team.CodeConflict, team.ReasonNotOwner)
	all(TaskRef{"2", "s-a", 1}, team.CodeNotFound, team.ReasonTaskNotFound)
	ok(t, l.As("a").Release(ctx, ref(first)))
	all(ref(first), team.CodeConflict, team.ReasonNotOwner)
	second := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	all(ref(first), team.CodeConflict, team.ReasonStaleAttempt)
	must[[]string](t)(l.Complete(ctx, ref(second), Result{}))
	all(ref(second), team.CodeConflict, team.ReasonAlreadyResolved)
	refused(t, l.RetryTask(ctx, "1"), team.CodeConflict, team.ReasonBadStatus)
	refused(t, l.Fail(ctx, TaskRef{ID: "1"}, Result{}), team.CodeConflict, team.ReasonBadStatus)
}

func TestLeases(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "alive", "dead")
	ctx := ctxFor(t)
	c := &clock{time.UnixMilli(1_000_000)}
	l.now = c.now
	must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-alive", Observed: ptr(team.Starting)}))
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "1"}, {Subject: "2"}, {Subject: "3"}, {Subject: "4"}}, "lead"))
	for _, owner := range []string{"s-alive", "s-dead", "foreign", "renewed"} {
		must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: owner, Lease: time.Minute}))
	}
	c.advance(time.Minute)
	if got := must[[]string](t)(l.ExpireLeases(ctx)); len(got) != 0 {
		t.Errorf("expired too early: %v", got)
	}
	if n := must[int64](t)(l.RenewLeases(ctx, []string{"renewed", "nobody"}, time.Minute)); n != 1 {
		t.Errorf("renewed %d", n)
	}
	c.advance(time.Second)
	// 1: its owner is supervised and alive, only the supervisor was away.
	if got := must[[]string](t)(l.ExpireLeases(ctx)); !cmp.Equal(got, []string{"2", "3"}) {
		t.Errorf("expired %v", got)
	}
	if got := must[[]string](t)(l.ReleaseOwner(ctx, "s-alive", "exit 3")); !cmp.Equal(got, []string{"1"}) {
		t.Errorf("released %v", got)
	}
	// Without a supervisor, a claim that finds nothing expires leases.
	for range 3 {
		must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-alive", Lease: time.Hour}))
	}
	c.advance(2 * time.Minute)
	if got := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-dead"})); got == nil || got.ID != "4" || got.Attempt != 2 {
		t.Errorf("%+v", got)
	}
	events := must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{What: "task.released", ID: "1"}))
	if len(events) != 1 || string(events[0].Data) != `{"owner":"alive","attempt":1,"why":"exit 3"}` {
		t.Errorf("%+v", events)
	}
}

// An owner whose process is not observed keeps its task by starting it again.
func TestStartAgainRenews(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	ctx := ctxFor(t)
	c := &clock{time.UnixMilli(1_000_000)}
	l.now = c.now
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "1"}}, "lead"))
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "foreign"}))
	for range 3 {
		if err := l.Start(ctx, TaskRef{ID: "1", Owner: "foreign", Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		c.advance(Lease * 3 / 4)
		if got := must[[]string](t)(l.ExpireLeases(ctx)); len(got) != 0 {
			t.Fatalf("expired: %v", got)
		}
	}
	c.advance(Lease)
	if got := must[[]string](t)(l.ExpireLeases(ctx)); !cmp.Equal(got, []string{"1"}) {
		t.Errorf("expired %v", got)
	}
}

func TestUpdateTask(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "s", Metadata: raw(`{"keep":1,"drop":2,"change":{"a":1}}`)}}, "lead"))
	got := must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "1", By: "lead", Subject: ptr("new"), Description: ptr("d"), ActiveForm: ptr("af"),
		Priority: ptr(7), Verify: ptr("true"), Metadata: raw(`{"drop":null,"change":{"b":2},"add":"x"}`), Owner: ptr("s-a")}))
	if got.Subject != "new" || got.Description != "d" || got.ActiveForm != "af" || got.Priority != 7 || got.Owner != "s-a" || got.OwnerName != "a" {
		t.Errorf("%+v", got)
	}
	if string(got.Metadata) != `{"add":"x","change":{"b":2},"keep":1}` {
		t.Errorf("metadata %s", got.Metadata)
	}
	if diff := cmp.Diff(got, must[Task](t)(l.Task(ctx, "1"))); diff != "" {
		t.Error(diff)
	}
	_, err := l.UpdateTask(ctx, TaskPatch{ID: "1", Owner: ptr("nobody")})
	refused(t, err, team.CodeNotFound, team.ReasonMemberNotFound)
	_, err = l.UpdateTask(ctx, TaskPatch{ID: "1", Subject: ptr("")})
	refused(t, err, team.CodeInvalid, "")
	_, err = l.UpdateTask(ctx, TaskPatch{ID: "1", Metadata: raw(`3`)})
	refused(t, err, team.CodeInvalid, "")
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	_, err = l.UpdateTask(ctx, TaskPatch{ID: "1", Owner: ptr("")})
	refused(t, err, team.CodeConflict, team.ReasonAlreadyClaimed)
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "1"}, {Subject: "2", DependsOn: nil}, {Subject: "3"}, {Subject: "4"}}, "lead"))
	must[Task](t)(l.AddDeps(ctx, "2", []string{"1"}, "lead"))
	must[Task](t)(l.AddDeps(ctx, "3", []string{"2", "1", "2"}, "lead"))
	for _, tt := range []struct{ id, dep, says string }{
		{"1", "1", "1 -> 1"}, {"1", "2", "1 -> 2 -> 1"}, {"1", "3", "1 -> 3 -> 1"},
	} {
		_, err := l.AddDeps(ctx, tt.id, []string{"4", tt.dep}, "lead")
		refused(t, err, team.CodeInvalid, team.ReasonCycle)
		if !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v does not say %s", err, tt.says)
		}
	}
	_, err := l.AddDeps(ctx, "1", []string{"99"}, "lead")
	refused(t, err, team.CodeNotFound, team.ReasonTaskNotFound)
	if got := must[Task](t)(l.Task(ctx, "1")); len(got.DependsOn) != 0 {
		t.Errorf("a refused change left %v", got.DependsOn)
	}
	if got := must[Task](t)(l.RemoveDeps(ctx, "3", []string{"1", "4"}, "lead")); !cmp.Equal(got.DependsOn, []string{"2"}) {
		t.Errorf("%v", got.DependsOn)
	}
	if ready := must[[]string](t)(l.DeleteTask(ctx, "2")); !cmp.Equal(ready, []string{"3"}) {
		t.Errorf("ready %v", ready)
	}
	sound(t, l)
	one := must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	_, err = l.DeleteTask(ctx, one.ID)
	refused(t, err, team.CodeConflict, team.ReasonAlreadyClaimed)
	_, err = l.AddDeps(ctx, one.ID, []string{"4"}, "lead")
	refused(t, err, team.CodeConflict, team.ReasonBadStatus)
	must[[]string](t)(l.DeleteTask(ctx, "4"))
	if made := must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "5"}}, "lead")); made[0].ID != "5" {
		t.Errorf("id %s was given out again", made[0].ID)
	}
}

func TestTaskFilters(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, make12(), "lead"))
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "10"}))
	must[[]string](t)(l.Complete(ctx, ref(must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "2"}))), Result{}))
	for _, tt := range []struct {
		f    TaskFilter
		want string
	}{
		{TaskFilter{}, "1 2 3 4 5 6 7 8 9 10 11 12"},
		{TaskFilter{Newest: true, Limit: 3}, "12 11 10"},
		{TaskFilter{Status: team.TaskCompleted}, "2"},
		{TaskFilter{Owner: "s-a"}, "2 10"},
		{TaskFilter{Owner: "s-a", OpenOnly: true}, "10"},
		{TaskFilter{IDs: []string{"11", "3", "99"}}, "3 11"},
		{TaskFilter{IDs: []string{}}, ""},
		{TaskFilter{Metadata: map[string]string{"area": "api"}}, "5 6"},
		{TaskFilter{Metadata: map[string]string{"area": "api", "urgent": "true"}}, "6"},
		{TaskFilter{Metadata: map[string]string{"size": "3"}, Status: team.TaskPending}, "5"},
		{TaskFilter{Metadata: map[string]string{`a"b.c`: "{}"}}, "6"},
		{TaskFilter{Metadata: map[string]string{"area": "ap"}}, ""},
	} {
		if got := strings.Join(ids(must[[]Task](t)(l.Tasks(ctx, tt.f))), " "); got != tt.want {
			t.Errorf("%+v: %s", tt.f, got)
		}
	}
}

func make12() []NewTask {
	batch := make([]NewTask, 12)
	for i := range batch {
		batch[i].Subject = "t"
	}
	batch[4].Metadata, batch[5].Metadata = raw(`{"area":"api","size":3}`), raw(`{"area":"api","urgent":true,"a\"b.c":{}}`)
	return batch
}

// The next task is found through its index, without sorting, whatever the size.
func TestClaimUsesIndexes(t *testing.T) {
	t.Parallel()
	db := newLedger(t).DB()
	plan := must[[]string](t)(read(ctxFor(t), db, "test", func(r *sql.Rows) (detail string, err error) {
		var skip int
		err = r.Scan(&skip, &skip, &skip, &detail)
		return detail, err
	}, "EXPLAIN QUERY PLAN "+sqlClaimNext, "s", "s", 1, 1))
	text := strings.Join(plan, "; ")
	for _, want := range []string{"idx_tasks_ready", "idx_tasks_assigned"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in the plan: %s", want, text)
		}
	}
	for _, line := range plan {
		if strings.Contains(line, "TEMP B-TREE") || line == "SCAN tasks" {
			t.Errorf("slow: %s", line)
		}
	}
}

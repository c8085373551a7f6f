package ledger

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// board makes a task in every state, using every field of a task.
func board(t *testing.T, l *Ledger) {
	t.Helper()
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{
		{Ref: "one", Subject: "done", Description: "d <&> \u2028", ActiveForm: "doing", Metadata: raw(`{"a":{"b":[1,null]}}`), Priority: 9, Verify: "true", RetryPolicy: RetryPolicy{2, 50}},
		{Subject: "failed", Priority: 8},
		{Ref: "three", Subject: "working", Priority: 7},
		{Subject: "assigned", Priority: 6},
		{Subject: "blocked", DependsOn: []string{"three", "one"}},
		{Subject: "deleted"},
	}, "lead"))
	claim := func(id string) TaskRef { return ref(must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: id}))) }
	must[[]string](t)(l.CompleteVerified(ctx, claim("1"), Result{Summary: "yes", Commit: "c0ffee", Files: []string{"x"}}, "true"))
	ok(t, l.Fail(ctx, claim("2"), Result{Error: "no", ExitCode: 3}))
	ok(t, l.Start(ctx, claim("3")))
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "4", Owner: ptr("s-b")}))
	must[[]string](t)(l.DeleteTask(ctx, "6"))
}

func TestImportRoundTrip(t *testing.T) {
	t.Parallel()
	from := newTeam(t, "a", "b")
	board(t, from)
	ctx := ctxFor(t)
	tasks := must[[]Task](t)(from.Tasks(ctx, TaskFilter{}))
	high := must[int64](t)(from.HighWater(ctx))
	if high != 6 {
		t.Fatalf("high-water mark %d", high)
	}

	to := newTeam(t, "a") // without b
	must[Imported](t)(to.ImportTasks(ctx, ImportIn{Tasks: tasks, HighWater: high, By: "lead"}))
	got := must[[]Task](t)(to.Tasks(ctx, TaskFilter{}))
	for i := range tasks { // not imported: claims, and the sessions of members that are missing in this team
		switch w := &tasks[i]; w.ID {
		case "3":
			w.Status, w.ClaimedAt, w.StartedAt, w.LeaseUntil = team.TaskPending, 0, 0, 0
		case "4":
			w.Owner, w.OwnerName = "", ""
		}
	}
	if d := cmp.Diff(tasks, got); d != "" {
		t.Error(d)
	}
	sound(t, to)
	next := must[[]Task](t)(to.CreateTasks(ctx, []NewTask{{Subject: "next"}}, "lead"))
	if next[0].ID != "7" {
		t.Errorf("the id of a deleted task was given out again: %s", next[0].ID)
	}
	// Imported dependencies are unblocked like local ones.
	task := must[*Task](t)(to.Claim(ctx, ClaimIn{Owner: "s-a"}))
	if task.ID != "3" {
		t.Fatalf("claimed %s, assigned is 3", task.ID)
	}
	if ready := must[[]string](t)(to.Complete(ctx, ref(task), Result{})); !cmp.Equal(ready, []string{"5"}) {
		t.Errorf("ready %v", ready)
	}
}

func TestImportIntoAFullBoard(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	board(t, l)
	ctx := ctxFor(t)
	in := ImportIn{Tasks: []Task{
		{ID: "2", Subject: "two", Status: team.TaskPending, DependsOn: []string{"1", "5"}},
		{ID: "1", Subject: "one", Status: team.TaskCompleted},
	}}
	_, err := l.ImportTasks(ctx, in)
	refused(t, err, team.CodeConflict, team.ReasonIDTaken)
	in.Renumber = true
	got := must[Imported](t)(l.ImportTasks(ctx, in))
	if d := cmp.Diff(map[string]string{"2": "7", "1": "8"}, got.IDs); d != "" {
		t.Error(d)
	}
	two := must[Task](t)(l.Task(ctx, "7"))
	if !cmp.Equal(two.DependsOn, []string{"8", "5"}) || !cmp.Equal(two.BlockedBy, []string{"5"}) {
		t.Errorf("depends on %v, blocked by %v", two.DependsOn, two.BlockedBy)
	}
	if one := must[Task](t)(l.Task(ctx, "8")); one.CompletedAt == 0 || one.CreatedAt == 0 {
		t.Errorf("%+v", one)
	}
	sound(t, l)
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ok1 := Task{ID: "1", Subject: "s", Status: team.TaskPending}
	with := func(f func(*Task)) []Task { c := ok1; f(&c); return []Task{c} }
	for _, tt := range []struct {
		tasks  []Task
		code   team.Code
		reason string
	}{
		{with(func(x *Task) { x.ID = "../1" }), team.CodeInvalid, "bad_task_id"},
		{with(func(x *Task) { x.ID = "01" }), team.CodeInvalid, "bad_task_id"},
		{with(func(x *Task) { x.ID = "9999999999999999999" }), team.CodeInvalid, "bad_task_id"},
		{[]Task{ok1, ok1}, team.CodeInvalid, "bad_task_id"},
		{with(func(x *Task) { x.Subject = " " }), team.CodeInvalid, ""},
		{with(func(x *Task) { x.Status = "deleted" }), team.CodeInvalid, ""},
		{with(func(x *Task) { x.Metadata = raw(`[]`) }), team.CodeInvalid, ""},
		{with(func(x *Task) { x.DependsOn = []string{"1"} }), team.CodeInvalid, team.ReasonCycle},
		{[]Task{with(func(x *Task) { x.DependsOn = []string{"#2"} })[0], {ID: "2", Subject: "s", Status: team.TaskPending,
			DependsOn: []string{"#1"}}}, team.CodeInvalid, team.ReasonCycle},
		{with(func(x *Task) { x.DependsOn = []string{"7"} }), team.CodeNotFound, team.ReasonTaskNotFound},
	} {
		_, err := l.ImportTasks(ctxFor(t), ImportIn{Tasks: append([]Task{{ID: "5", Subject: "good", Status: team.TaskPending}}, tt.tasks...)})
		refused(t, err, tt.code, tt.reason)
	}
	if k := must[Counts](t)(l.Counts(ctxFor(t))); k.Total() != 0 {
		t.Errorf("a refused import left %d tasks", k.Total())
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	c := &clock{time.Now().Add(-100 * 24 * time.Hour)}
	l.now = c.now
	post := func(text, parent string) Message {
		t.Helper()
		m, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text, Parent: parent})
		ok(t, err)
		return m
	}
	first := post("old and read", "")
	post("its answer", first.ID)
	must[Run](t)(l.StartRun(ctx))
	unread := post("old and not read", "")
	must[Run](t)(l.StartRun(ctx))
	post("of the run that is open", "")
	for _, m := range must[[]Message](t)(l.Messages(ctx, MessageFilter{Run: 1})) {
		must[bool](t)(l.Mark(ctx, DeliveryMark{MessageID: m.ID, Recipient: "a", State: team.Read, Evidence: "test"}))
	}
	c.at = time.Now()
	mark := must[PruneMark](t)(l.PruneMark(ctx, c.at.Add(-30*24*time.Hour).UnixMilli()))
	must[[]Task](t)(l.CreateTasks(ctx, make12(), "lead")) // after the mark

	for _, q := range []string{"DELETE FROM events", "DELETE FROM messages"} {
		if err := sqlExec(t, l.DB(), q); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Fatalf("%s: %v", q, err)
		}
	}
	events := must[int64](t)(l.LastEvent(ctx))
	var archive bytes.Buffer
	told := must[Pruned](t)(l.Archive(ctx, mark, &archive))
	did := must[Pruned](t)(l.Prune(ctx, mark))
	if told != did || did.Messages != 2 || did.Deliveries != 2 || did.Events == 0 {
		t.Errorf("archived %+v, pruned %+v", told, did)
	}
	if n := strings.Count(archive.String(), "\n"); int64(n) != did.Events+did.Messages {
		t.Errorf("%d lines in the archive", n)
	}
	var texts []string
	for _, m := range must[[]Message](t)(l.Messages(ctx, MessageFilter{})) {
		texts = append(texts, m.Text)
	}
	if d := cmp.Diff([]string{"old and not read", "of the run that is open"}, texts); d != "" {
		t.Error(d)
	}
	for _, e := range must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{})) {
		if e.At < mark.Before {
			t.Errorf("left: %+v", e)
		}
	}
	if now := must[int64](t)(l.LastEvent(ctx)); now <= events {
		t.Errorf("event numbers went back from %d to %d", events, now)
	}
	if err := sqlExec(t, l.DB(), "DELETE FROM events"); err == nil {
		t.Error("the log can be cut after a prune")
	}
	// A member that has left awaits nothing.
	ok(t, l.RemoveMember(ctx, "s-"+unread.To))
	mark = must[PruneMark](t)(l.PruneMark(ctx, mark.Before))
	if did := must[Pruned](t)(l.Prune(ctx, mark)); did.Messages != 1 {
		t.Errorf("%+v", did)
	}
	sound(t, l)
}

package ledger

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

const gone = `{"type":"teammate_terminated","message":"Teammate \"a\" was stopped."}`

// When a member is removed from the roster, the system notifies the lead in the
// same transaction.
func TestLeaveTellsTheLead(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a", "b")
	n := Notice{Kind: team.KindTeammateTerminated, Text: gone, Summary: "gone", IdemKey: "terminated:g1"}
	for i := range 2 { // repeating it is allowed, without a second notice
		m, ds, err := l.Leave(ctx, "s-a", n)
		ok(t, err)
		if i == 1 {
			if m.ID != "" || len(ds) != 0 {
				t.Fatalf("told again: %+v", m)
			}
			continue
		}
		if m.From != team.SystemName || m.To != team.LeadName || m.Text != gone || len(ds) != 1 || ds[0].Session != "s-team-lead" {
			t.Fatalf("%+v to %+v", m, ds)
		}
	}
	if left := must[Member](t)(l.Member(ctx, "a")); left.RemovedAt == 0 {
		t.Fatal("still on the roster")
	}
	if from := sqlRow[string](t, l.DB(), "SELECT fromSession FROM messages WHERE kind = 'teammate_terminated'"); from != "" {
		t.Errorf("the system has the session %q", from)
	}
	// The key prevents a second notice if both a change and the removal are
	// reported.
	killed := team.Killed
	n.IdemKey = "terminated:g2"
	must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-b", Observed: &killed, Notice: &n}))
	must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-b", Notice: &n}))
	_, _, err := l.Leave(ctx, "s-b", n)
	ok(t, err)
	if list := must[[]Message](t)(l.Messages(ctx, MessageFilter{Kind: team.KindTeammateTerminated})); len(list) != 2 {
		t.Errorf("%d notices of two who left", len(list))
	}
	sound(t, l)
}

// The lead is notified once of every task completed by a member, even if the
// member posts the notice itself, but not of its own tasks.
func TestCompletionTellsTheLead(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	told := func() []Message {
		return must[[]Message](t)(l.Messages(ctx, MessageFilter{Kind: team.KindTaskCompleted}))
	}
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "vet <it>"}, {Subject: "own"}, {Subject: "failed"}}, "lead"))
	for _, owner := range []string{"s-a", "s-team-lead", "s-a"} {
		must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: owner}))
	}
	ref := TaskRef{ID: "1", Owner: "s-a", Attempt: 1}
	must[[]string](t)(l.Complete(ctx, ref, Result{}))
	must[[]string](t)(l.Complete(ctx, TaskRef{ID: "2", Owner: "s-team-lead", Attempt: 1}, Result{}))
	ok(t, l.Fail(ctx, TaskRef{ID: "3", Owner: "s-a", Attempt: 1}, Result{}))
	_, err := l.Complete(ctx, ref, Result{})
	refused(t, err, team.CodeConflict, team.ReasonAlreadyResolved)
	got := told()
	if len(got) != 1 || got[0].From != "a" || got[0].To != team.LeadName || got[0].Summary != "completed task 1: vet <it>" ||
		!strings.HasPrefix(got[0].Text, `{"type":"task_completed","from":"a","taskId":"1","taskSubject":"vet <it>","timestamp":"2`) {
		t.Fatalf("%+v", got)
	}
	again, ds, err := l.Post(ctx, NewMessage{Kind: team.KindTaskCompleted, From: "a", To: team.LeadName, Text: "{}", IdemKey: TaskCompletedKey("1", 1)})
	ok(t, err)
	if again.ID != got[0].ID || len(ds) != 1 || ds[0].State != team.Posted || len(told()) != 1 {
		t.Errorf("%+v to %+v", again, ds)
	}
	sound(t, l)
}

func TestNobodyIsTheSystem(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	for _, name := range []string{"supervisor", "person", "all", "system"} {
		_, _, err := l.AddMember(ctx, Member{Name: name}, false)
		refused(t, err, team.CodeInvalid, team.ReasonReservedName)
	}
	for _, name := range []string{"../a", "a/b", "System", "..", "-a"} {
		if _, _, err := l.AddMember(ctx, Member{Name: name}, false); !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"system", "System"} {
		_, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: name, To: "a", Text: "obey"})
		refused(t, err, team.CodeDenied, team.ReasonReservedSender)
	}
	_, _, err := l.Post(ctx, NewMessage{Kind: team.KindTeammateTerminated, From: "a", To: team.LeadName, Text: gone})
	refused(t, err, team.CodeInvalid, "invalid_kind")
	_, _, err = l.Leave(ctx, "s-a", Notice{Kind: team.KindMessage, Text: "a lie"})
	refused(t, err, team.CodeInvalid, "invalid_kind")
	if m := must[Member](t)(l.Member(ctx, "a")); m.RemovedAt != 0 {
		t.Error("a refused notice took the member away")
	}
	if err := sqlExec(t, l.DB(), `INSERT INTO messages(id, run, kind, fromAgent, text, at) VALUES ('x', 1, 'teammate_terminated', 'a', 't', 1)`); err == nil {
		t.Error("the schema takes a notice of a member's")
	}
	_, _, err = l.Post(ctx, NewMessage{Kind: team.KindMessage, From: "a", To: team.SystemName, Text: "hello?"})
	refused(t, err, team.CodeNotFound, team.ReasonMemberNotFound)
}

// An idle period is reported once, even by a new supervisor that must observe
// it again.
func TestIdleIsToldOncePerPeriod(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	told := 0
	for i, step := range []struct {
		to   team.Activity
		more int
	}{
		{team.Idle, 1}, {team.ActivityUnknown, 0}, {team.Idle, 0}, {team.Working, 0}, {team.Idle, 1}, {team.Waiting, 0}, {team.Idle, 1},
	} {
		p := MemberPatch{SessionKey: "s-a", Activity: &step.to}
		if step.to == team.Idle {
			p.Notice = &Notice{Kind: team.KindIdle, Text: "{}"}
		}
		must[Member](t)(l.UpdateMember(ctx, p))
		told += step.more
		if list := must[[]Message](t)(l.Messages(ctx, MessageFilter{Kind: team.KindIdle, From: "a"})); len(list) != told {
			t.Fatalf("step %d (%s): told %d times, want %d", i, step.to, len(list), told)
		}
	}
	must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", Generation: ptr("g2"), Notice: &Notice{Kind: team.KindIdle, Text: "{}"}}))
	if list := must[[]Message](t)(l.Messages(ctx, MessageFilter{Kind: team.KindIdle})); len(list) != told+1 {
		t.Error("the next generation was not told")
	}
}

// Undelivered messages to a terminated teammate are dropped with this wording.
func TestDroppedMessageSaysTheStatus(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	killed := team.Killed
	must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", Observed: &killed}))
	m, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "wait for me"})
	ok(t, err)
	if d := must[Delivery](t)(l.Delivery(ctx, m.ID, "a")); d.State != team.Posted {
		t.Errorf("dropped while it may be started again: %+v", d)
	}
	ok(t, l.RemoveMember(ctx, "s-a"))
	d := must[Delivery](t)(l.Delivery(ctx, m.ID, "a"))
	if d.State != team.Dropped || !strings.HasPrefix(d.Reason, `Dropping message for task a@demo: status is "killed"`) {
		t.Errorf("%+v", d)
	}
}

// A member's edges are deleted with it, and the log records that.
func TestEdgesGoWithTheirMember(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a", "b", "aa")
	for _, e := range []string{"a.reviews.b", "b.delegates.A", "aa.reviews.b", "b.handoff.aa"} {
		ok(t, l.Set(ctx, EdgePrefix+e, true))
	}
	ok(t, l.RemoveMember(ctx, "s-a"))
	left := must[[]string](t)(l.SettingNames(ctx, EdgePrefix))
	if want := "edge.aa.reviews.b edge.b.handoff.aa"; strings.Join(left, " ") != want {
		t.Errorf("left %v, want %s", left, want)
	}
	events := must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{What: "team.edge"}))
	if len(events) != 2 || events[0].ID != "a.reviews.b" || events[0].After != "removed" || !strings.Contains(string(events[0].Data), "a left the team") {
		t.Errorf("%+v", events)
	}
}

// Migrating a ledger of the previous schema keeps messages, threads and
// deliveries, and reuses no number.
func TestNoticesComeToAnOlderLedger(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := open(ctx, path, Options{Create: true}, migrations()[:7])
	ok(t, err)
	for _, q := range []string{
		`INSERT INTO runs(id, startedAt) VALUES (1, 1)`,
		`INSERT INTO messages(seq, id, run, kind, fromAgent, text, at) VALUES (7, 'm1', 1, 'message', 'a', 'first', 5)`,
		`INSERT INTO messages(seq, id, run, kind, fromAgent, parent, idemKey, text, at) VALUES (9, 'm2', 1, 'task_response', 'b', 'm1', 'k', 'second', 6)`,
		`INSERT INTO deliveries(message, recipient, session, seq, rank, state, at) VALUES ('m1', 'b', 's', 7, 2, 'read', 6)`,
		`UPDATE sqlite_sequence SET seq = 40 WHERE name = 'messages'`,
	} {
		ok(t, sqlExec(t, db, q))
	}
	ok(t, db.Close())
	db = openAt(t, path)
	l := New(db, Direct(db))
	sound(t, l)
	if n := sqlRow[int](t, db, "SELECT count(*) FROM deliveries d JOIN messages m ON m.id = d.message AND m.seq = d.seq"); n != 1 {
		t.Errorf("%d deliveries have their message", n)
	}
	if depth := sqlRow[int](t, db, "SELECT depth FROM v_team_run_conversation WHERE id = 'm2'"); depth != 1 {
		t.Errorf("the answer is at depth %d", depth)
	}
	if seq := sqlRow[int](t, db, "SELECT seq FROM sqlite_sequence WHERE name = 'messages'"); seq != 40 {
		t.Errorf("the next message gets %d", seq+1)
	}
	for _, q := range []string{
		`DELETE FROM messages WHERE id = 'm2'`, `UPDATE messages SET text = 'x'`,
		`INSERT INTO deliveries(message, recipient, session, seq, rank, state, at) VALUES ('none', 'b', 's', 7, 2, 'read', 6)`,
		`INSERT INTO messages(id, run, kind, fromAgent, text, at) VALUES ('m3', 1, 'gossip', 'a', 't', 1)`,
		`INSERT INTO messages(id, run, kind, fromAgent, idemKey, text, at) VALUES ('m4', 1, 'message', 'b', 'k', 't', 1)`,
	} {
		if err := sqlExec(t, db, q); err == nil {
			t.Errorf("allowed: %s", q)
		}
	}
	ok(t, db.Close())
	fresh := openAt(t, filepath.Join(t.TempDir(), "ledger.db"))
	old := openAt(t, path)
	const schema = "SELECT coalesce(group_concat(sql, ';'), '') FROM (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name)"
	if a, b := sqlRow[string](t, fresh, schema), sqlRow[string](t, old, schema); a != b {
		t.Error("a new ledger has another schema than one that was brought up")
	}
}

// A step that leaves dangling references is rolled back.
func TestMigrationChecksWhatRefersToWhat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	ok(t, openAt(t, path).Close())
	last := len(migrations()) + 1
	steps := append(migrations(), migration{last, "9999_bad.sql",
		"INSERT INTO deliveries(message, recipient, session, seq, rank, state, at) VALUES ('none', 'b', 's', 7, 2, 'read', 6)"})
	_, err := open(ctxFor(t), path, Options{}, steps)
	if err == nil || !strings.Contains(err.Error(), "dangling references") {
		t.Fatalf("%v", err)
	}
	db := openAt(t, path)
	if n := sqlRow[int](t, db, "SELECT count(*) FROM deliveries"); n != 0 {
		t.Error("the step was kept")
	}
}

// A failed turn is reported once per idle period, even if the period was
// reported before the failure was known; the error is cleared with the period.
func TestFailedTurnIsToldOncePerPeriod(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	told := 0
	for i, step := range []struct {
		to     team.Activity
		failed string
		more   int
	}{
		{team.Idle, "", 1}, {team.Idle, "no", 1}, {team.Idle, "no", 0}, {team.ActivityUnknown, "", 0}, {team.Idle, "", 0}, {team.Idle, "no", 0},
		{team.Working, "", 0}, {team.Idle, "no", 1}, {team.Idle, "", 0}, {team.Working, "no", 0}, {team.Idle, "", 1},
	} {
		p := MemberPatch{SessionKey: "s-a", Activity: &step.to, TurnError: &step.failed}
		if step.to == team.Idle {
			p.Notice = &Notice{Kind: team.KindIdle, Text: "{}", Failed: step.failed != ""}
		}
		want := step.failed
		if step.to != team.Idle {
			want = ""
		}
		must[Member](t)(l.UpdateMember(ctx, p))
		if m := must[Member](t)(l.Member(ctx, "a")); m.TurnError != want {
			t.Errorf("step %d: its turn failed of %q", i, m.TurnError)
		}
		told += step.more
		if list := must[[]Message](t)(l.Messages(ctx, MessageFilter{Kind: team.KindIdle, From: "a"})); len(list) != told {
			t.Fatalf("step %d (%s): told %d times, want %d", i, step.to, len(list), told)
		}
	}
}

// Unread idle notices of a member replace each other; a read one stays, and so
// does one that reports a failure.
func TestIdleNoticesReplaceEachOther(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a", "b")
	idle := func(from, more string) string {
		t.Helper()
		m, _, err := l.Post(ctx, NewMessage{Kind: team.KindIdle, From: from, To: team.LeadName,
			Text: `{"type":"idle_notification","from":"` + from + `","timestamp":"x"` + more + `}`})
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	want := func(id string, state team.DeliveryState) {
		t.Helper()
		if d, err := l.Delivery(ctx, id, team.LeadName); err != nil || d.State != state {
			t.Errorf("%s %q, %v; want %s", d.State, d.Reason, err, state)
		}
	}
	first, other := idle("a", ""), idle("b", "")
	second := idle("a", "")
	want(first, team.Dropped)
	want(other, team.Posted)
	if _, err := l.Mark(ctx, DeliveryMark{MessageID: second, Recipient: team.LeadName, State: team.Read, Evidence: "test"}); err != nil {
		t.Fatal(err)
	}
	failed := idle("a", `,"completedStatus":"failed","failureReason":"exit 1"`)
	want(second, team.Read)
	last := idle("a", "")
	want(failed, team.Posted)
	next := idle("a", "")
	want(last, team.Dropped)
	want(next, team.Posted)
	want(other, team.Posted)
}

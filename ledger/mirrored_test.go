package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestMirroredOnce checks that an object of another program is mirrored once,
// however often it is passed, even if a new run has begun meanwhile; and that a
// task with an owner in the other program can at no moment be claimed by
// another member.
func TestMirroredOnce(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	ctx := t.Context()
	row := func(kind MirrorKind, there string) Mirrored { return Mirrored{Bridge: "b", Kind: kind, There: there} }

	m, _, err := l.MirrorMember(ctx, row(MirrorMember, "researcher"), Member{Name: "researcher", Spec: team.MemberSpec{Agent: team.AgentExternal}})
	ok(t, err)
	again, _, err := l.MirrorMember(ctx, row(MirrorMember, "researcher"), Member{Name: "researcher", Spec: team.MemberSpec{Agent: team.AgentExternal}})
	ok(t, err)
	if again.SessionKey != m.SessionKey {
		t.Errorf("a second member: %s and %s", m.Name, again.Name)
	}
	other, _, err := l.AddMember(ctx, Member{Name: "other"}, true)
	ok(t, err)

	id, err := l.MirrorTask(ctx, row(MirrorTask, "7"), NewTask{Subject: "theirs"}, m.SessionKey, "b")
	ok(t, err)
	if same, err := l.MirrorTask(ctx, row(MirrorTask, "7"), NewTask{Subject: "theirs"}, m.SessionKey, "b"); err != nil || same != id {
		t.Errorf("a second task %s beside %s (%v)", same, id, err)
	}
	if got, err := l.Claim(ctx, ClaimIn{Owner: other.SessionKey}); err != nil || got != nil {
		t.Errorf("another member claimed %v (%v)", got, err)
	}
	if _, err := l.MirrorTask(ctx, row(MirrorTask, "8"), NewTask{}, "", "b"); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("a task without a subject: %v", err)
	}

	mail := NewMessage{Kind: team.KindMessage, From: "researcher", To: "other", Text: "hello"}
	first, ds, err := l.MirrorMail(ctx, row(MirrorMail, "other/1"), mail)
	ok(t, err)
	if len(ds) != 1 || ds[0].State != team.Posted {
		t.Errorf("deliveries %+v", ds)
	}
	_, err = l.StartRun(ctx)
	ok(t, err)
	second, _, err := l.MirrorMail(ctx, row(MirrorMail, "other/1"), mail)
	ok(t, err)
	if second.ID != first.ID {
		t.Error("posted twice, in two runs")
	}

	rows, err := l.Mirrored(ctx, "b")
	ok(t, err)
	if len(rows) != 3 {
		t.Errorf("%d notes, want 3: %+v", len(rows), rows)
	}
	ok(t, l.Mirror(ctx, []Mirrored{{Bridge: "b", Kind: MirrorDraft, There: "x", Here: "y", Ours: true, Data: []byte(`{"a":1}`)}}, rows))
	rows, err = l.Mirrored(ctx, "b")
	ok(t, err)
	if len(rows) != 1 || !rows[0].Ours || string(rows[0].Data) != `{"a":1}` {
		t.Errorf("notes %+v", rows)
	}
}

package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// stopped makes a member one that ran and was stopped.
func stopped(t *testing.T, l *Ledger, name string) Member {
	t.Helper()
	m := must[Member](t)(l.Member(ctxFor(t), name))
	ok(t, move(t, l, m, team.Starting, team.Running, team.Exited, team.Completed))
	return must[Member](t)(l.UpdateMember(ctxFor(t), MemberPatch{SessionKey: m.SessionKey, Desired: ptr(team.WantStopped), StartedAt: ptr(int64(1))}))
}

func move(t *testing.T, l *Ledger, m Member, states ...team.Observed) error {
	t.Helper()
	for _, s := range states {
		if _, err := l.UpdateMember(ctxFor(t), MemberPatch{SessionKey: m.SessionKey, Observed: &s}); err != nil {
			return err
		}
	}
	return nil
}

// renamed renames a stopped member, as the supervisor does.
func renamed(t *testing.T, l *Ledger, m Member, name string) {
	t.Helper()
	ctx := ctxFor(t)
	r := must[Rename](t)(l.BeginRename(ctx, m.SessionKey, name))
	must[Rename](t)(l.ApplyRename(ctx, r.ID))
	ok(t, l.EndRename(ctx, r.ID))
}

func TestRenameGoesThroughTheLedger(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "old", "peer")
	ctx := ctxFor(t)
	post := func(n NewMessage) (Message, []Delivery) {
		t.Helper()
		n.Kind, n.Text = team.KindMessage, "hello"
		m, ds, err := l.Post(ctx, n)
		ok(t, err)
		return m, ds
	}
	before, _ := post(NewMessage{From: "old", To: "peer", IdemKey: "k"})
	waiting, ds := post(NewMessage{From: "peer", To: "old"})
	tasks := must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "a"}}, "team-lead"))
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: tasks[0].ID, By: "team-lead", Owner: ptr("s-old")}))
	ok(t, l.Set(ctx, EdgePrefix+"old.reviews.peer", true))
	ok(t, l.Set(ctx, EdgePrefix+"peer.reviews.old", true))
	ok(t, l.Set(ctx, EdgePrefix+"older.reviews.peer", true))
	ok(t, l.Set(ctx, "budgets", map[string]any{"team": map[string]int{"tokens": 9}, "members": map[string]any{"old": map[string]int{"tokens": 5}}}))
	m := stopped(t, l, "old")

	renamed(t, l, m, "new")
	after := must[Member](t)(l.Member(ctx, "new"))
	if after.SessionKey != m.SessionKey || after.AgentID != "new@demo" || after.RemovedAt != 0 {
		t.Errorf("%+v", after)
	}
	for _, name := range []string{"old", "OLD", "old@demo", "new@demo", m.SessionKey} {
		if got, err := l.Member(ctx, name); err != nil || got.SessionKey != m.SessionKey {
			t.Errorf("%s is %q: %v", name, got.Name, err)
		}
	}
	if got := must[Task](t)(l.Task(ctx, tasks[0].ID)); got.OwnerName != "new" || got.Owner != m.SessionKey {
		t.Errorf("the task belongs to %q", got.OwnerName)
	}
	// What was on its way under the old name reaches the member, once.
	d := must[Delivery](t)(l.Delivery(ctx, waiting.ID, ds[0].Recipient))
	if d.Recipient != "new" || d.State != team.Posted {
		t.Errorf("%+v", d)
	}
	if moved := must[bool](t)(l.Mark(ctx, DeliveryMark{MessageID: waiting.ID, Recipient: "old", State: team.Mailed})); !moved {
		t.Error("a mark for the old name changes nothing")
	}
	if n := len(must[[]Delivery](t)(l.Deliveries(ctx, waiting.ID))); n != 1 {
		t.Errorf("%d deliveries", n)
	}
	if sent, to := post(NewMessage{From: "peer", To: "old"}); sent.To != "new" || to[0].Session != m.SessionKey {
		t.Errorf("mail to the old name went to %q", sent.To)
	}
	if again, _ := post(NewMessage{From: "new", To: "peer", IdemKey: "k"}); again.ID != before.ID {
		t.Error("an idempotency key of before the rename is used again")
	}
	if got := must[[]Message](t)(l.Messages(ctx, MessageFilter{From: "new"})); len(got) != 1 || got[0].ID != before.ID || got[0].From != "old" {
		t.Errorf("sent by new: %+v", got)
	}
	for _, name := range []string{"new", "old"} {
		if got := must[[]Message](t)(l.Messages(ctx, MessageFilter{Recipient: name})); len(got) != 2 {
			t.Errorf("sent to %s: %d messages", name, len(got))
		}
	}
	if got := sqlRow[string](t, l.DB(), "SELECT group_concat(name) FROM (SELECT name FROM settings WHERE name LIKE 'edge.%' ORDER BY name)"); got != "edge.new.reviews.peer,edge.older.reviews.peer,edge.peer.reviews.new" {
		t.Errorf("edges %s", got)
	}
	if got := sqlRow[string](t, l.DB(), "SELECT value FROM settings WHERE name = 'budgets'"); got != `{"members":{"new":{"tokens":5}},"team":{"tokens":9}}` {
		t.Errorf("budgets %s", got)
	}
	if got := sqlRow[string](t, l.DB(), "SELECT before || '>' || after FROM events WHERE what = 'member.renamed'"); got != "old>new" {
		t.Errorf("event %q", got)
	}
	// The old name is free, and then means its new owner.
	other, _, err := l.AddMember(ctx, Member{Name: "old"}, true)
	ok(t, err)
	if got := must[Member](t)(l.Member(ctx, "old")); got.SessionKey != other.SessionKey {
		t.Errorf("old is %+v", got)
	}
	if sent, to := post(NewMessage{From: "peer", To: "old"}); sent.To != "old" || to[0].Session != other.SessionKey {
		t.Errorf("mail went to %q", sent.To)
	}
}

// Both names are taken from the beginning to the end of a rename, and it goes on where it
// was cut short.
func TestRenameIsTakenUp(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "old", "peer")
	ctx := ctxFor(t)
	m := stopped(t, l, "old")
	r := must[Rename](t)(l.BeginRename(ctx, m.SessionKey, "new"))
	for _, state := range []RenameState{RenameBegun, RenameApplied} {
		for _, name := range []string{"old", "new"} {
			_, _, err := l.AddMember(ctx, Member{Name: name}, true)
			refused(t, err, team.CodeConflict, team.ReasonNameTaken)
		}
		_, err := l.BeginRename(ctx, m.SessionKey, "other")
		refused(t, err, team.CodeConflict, team.ReasonBusy)
		_, err = l.BeginRename(ctx, stopped(t, l, "peer").SessionKey, "old")
		refused(t, err, team.CodeConflict, team.ReasonNameTaken)
		if open := must[[]Rename](t)(l.OpenRenames(ctx)); len(open) != 1 || open[0].State != state {
			t.Errorf("%+v", open)
		}
		if again := must[Rename](t)(l.BeginRename(ctx, m.SessionKey, "new")); again.ID != r.ID || again.State != state {
			t.Errorf("%+v", again)
		}
		must[Rename](t)(l.ApplyRename(ctx, r.ID))
	}
	refused(t, l.DropRename(ctx, r.ID), team.CodeConflict, "")
	ok(t, l.EndRename(ctx, r.ID))
	if open := must[[]Rename](t)(l.OpenRenames(ctx)); len(open) != 0 {
		t.Errorf("%+v", open)
	}
	// One that was begun and given up leaves nothing.
	r = must[Rename](t)(l.BeginRename(ctx, m.SessionKey, "newer"))
	refused(t, l.EndRename(ctx, r.ID), team.CodeConflict, "")
	ok(t, l.DropRename(ctx, r.ID))
	if got := must[Member](t)(l.Member(ctx, "new")); got.Name != "new" {
		t.Errorf("%+v", got)
	}
	_, err := l.Member(ctx, "newer")
	refused(t, err, team.CodeNotFound, team.ReasonMemberNotFound)
}

func TestRenameIsRefused(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "old", "peer", "gone")
	ctx := ctxFor(t)
	lead := must[Member](t)(l.Member(ctx, team.LeadName))
	m := must[Member](t)(l.Member(ctx, "old"))
	_, err := l.BeginRename(ctx, "nobody", "new")
	refused(t, err, team.CodeNotFound, team.ReasonMemberNotFound)
	_, err = l.BeginRename(ctx, lead.SessionKey, "new")
	refused(t, err, team.CodeInvalid, "lead")
	_, err = l.BeginRename(ctx, m.SessionKey, "new") // it is to be started
	refused(t, err, team.CodeConflict, team.ReasonMemberRunning)
	if want := "teamctl rename --restart old new"; team.HintOf(err) != want {
		t.Errorf("hint %q", team.HintOf(err))
	}
	ok(t, l.NameFree(ctx, m.SessionKey, "new")) // asked before it is stopped
	stopped(t, l, "old")
	ok(t, l.RemoveMember(ctx, stopped(t, l, "gone").SessionKey))
	for name, hint := range map[string]string{
		"peer": "teamctl rename old peer-2",
		"gone": "teamctl rename gone gone-2 && teamctl rename old gone",
	} {
		_, err := l.BeginRename(ctx, m.SessionKey, name)
		for _, err := range []error{err, l.NameFree(ctx, m.SessionKey, name)} {
			refused(t, err, team.CodeConflict, team.ReasonNameTaken)
			if team.HintOf(err) != hint {
				t.Errorf("%s: hint %q", name, team.HintOf(err))
			}
		}
	}
	for name, reason := range map[string]string{"New": team.ReasonInvalidName, "a/b": team.ReasonInvalidName, "": team.ReasonInvalidName, "all": team.ReasonReservedName, team.LeadName: team.ReasonReservedName} {
		_, err := l.BeginRename(ctx, m.SessionKey, name)
		refused(t, err, team.CodeInvalid, reason)
	}
	// A start between the two writes wins.
	r := must[Rename](t)(l.BeginRename(ctx, m.SessionKey, "new"))
	ok(t, move(t, l, m, team.Starting))
	_, err = l.ApplyRename(ctx, r.ID)
	refused(t, err, team.CodeConflict, team.ReasonMemberRunning)
	joined, _, err := l.AddMember(ctx, Member{Name: "joined", Desired: team.WantStopped, Spec: team.MemberSpec{Agent: team.AgentExternal}}, true)
	ok(t, err)
	_, err = l.BeginRename(ctx, joined.SessionKey, "other")
	refused(t, err, team.CodeConflict, "external")
	if open := sqlRow[int](t, l.DB(), "SELECT count(*) FROM renames"); open != 1 {
		t.Errorf("%d renames", open)
	}
}

// A member that has left is renamed with its earlier lives, and a name whose spawn failed is free.
func TestRenameOfLives(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "old", "new", "peer")
	ctx := ctxFor(t)
	_, _, err := l.Post(ctx, NewMessage{Kind: team.KindBroadcast, From: "peer", Text: "all"})
	ok(t, err)
	ok(t, l.RemoveMember(ctx, "s-new")) // it was never up
	first := stopped(t, l, "old")
	ok(t, l.RemoveMember(ctx, first.SessionKey))
	again, _, err := l.AddMember(ctx, Member{Name: "old"}, true)
	ok(t, err)
	_, err = l.BeginRename(ctx, first.SessionKey, "new")
	refused(t, err, team.CodeConflict, team.ReasonNameTaken)
	ok(t, l.RemoveMember(ctx, stopped(t, l, "old").SessionKey))
	renamed(t, l, again, "new")
	if got := sqlRow[int](t, l.DB(), "SELECT count(*) FROM members WHERE name = 'new' AND startedAt > 0"); got != 2 {
		t.Errorf("%d lives have the new name", got)
	}
	if got := must[Member](t)(l.Member(ctx, "new")); got.SessionKey != again.SessionKey {
		t.Errorf("new is %+v", got)
	}
	if got := sqlRow[string](t, l.DB(), "SELECT session FROM deliveries WHERE recipient = 'new'"); got != first.SessionKey {
		t.Errorf("the broadcast to new is that of %s", got)
	}
	back, _, err := l.AddMember(ctx, Member{Name: "new"}, true)
	ok(t, err)
	if got := must[Member](t)(l.Member(ctx, "old")); got.SessionKey != back.SessionKey {
		t.Errorf("old is %+v", got)
	}
	if _, to, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: "peer", To: "old", Text: "x"}); err != nil || to[0].Session != back.SessionKey {
		t.Errorf("%+v, %v", to, err)
	}
	if got := must[[]Rename](t)(l.Renames(ctx, back.SessionKey)); len(got) != 1 || got[0].Was != "old" {
		t.Errorf("%+v", got)
	}
}

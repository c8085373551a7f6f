package ledger

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func TestTeamRow(t *testing.T) {
	t.Parallel()
	db := openAt(t, t.TempDir()+"/ledger.db")
	l := New(db, Direct(db))
	ctx := ctxFor(t)
	_, err := l.Team(ctx)
	refused(t, err, team.CodeNotFound, team.ReasonTeamNotFound)
	_, err = l.UpdateTeam(ctx, TeamPatch{})
	refused(t, err, team.CodeNotFound, team.ReasonTeamNotFound)
	_, err = l.CurrentRun(ctx)
	refused(t, err, team.CodeNotFound, team.ReasonTeamNotFound)
	_, err = l.CreateTeam(ctx, TeamRow{Key: "k"})
	refused(t, err, team.CodeInvalid, "")
	made := must[TeamRow](t)(l.CreateTeam(ctx, TeamRow{Key: "k", Name: "K k", LeadSession: "s", Repo: "/r", CreatedAt: 5}))
	if diff := cmp.Diff(TeamRow{Key: "k", Name: "K k", LeadSession: "s", Repo: "/r", CreatedAt: 5, Status: "active"}, made); diff != "" {
		t.Error(diff)
	}
	_, err = l.CreateTeam(ctx, TeamRow{Key: "other", LeadSession: "s"})
	refused(t, err, team.CodeConflict, team.ReasonTeamExists)
	_, err = l.UpdateTeam(ctx, TeamPatch{Status: ptr("asleep")})
	refused(t, err, team.CodeInvalid, "")
	got := must[TeamRow](t)(l.UpdateTeam(ctx, TeamPatch{Status: ptr("shutdown"), Hidden: &[]string{"%3"}, Base: ptr("main")}))
	made.Status, made.Hidden, made.Base = "shutdown", []string{"%3"}, "main"
	if diff := cmp.Diff(made, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(got, must[TeamRow](t)(l.Team(ctx))); diff != "" {
		t.Error(diff)
	}
}

func TestAddMember(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	ctx := ctxFor(t)
	lead, renamed, err := l.AddMember(ctx, Member{Name: team.LeadName, SessionKey: "lead", Role: team.RoleLeader}, true)
	ok(t, err)
	if renamed || lead.AgentID != "team-lead@demo" {
		t.Errorf("%+v", lead)
	}
	_, _, err = l.AddMember(ctx, Member{Name: team.LeadName}, false)
	refused(t, err, team.CodeConflict, team.ReasonNameTaken)
	spec := team.MemberSpec{Agent: "worker", Backend: "tmux", Command: []string{"a", "b"}, Env: map[string]string{"K": "v"}, Cwd: "/r"}
	one, renamed, err := l.AddMember(ctx, Member{Name: "Builder", Spec: spec}, false)
	ok(t, err)
	if renamed || one.AgentID != "Builder@demo" || one.Color != "blue" || !strings.HasPrefix(one.SessionKey, "agent:default:teammate:") ||
		one.Role != team.RoleExecutor || one.Desired != team.WantRunning || one.Observed != team.Pending || one.Activity != team.ActivityUnknown {
		t.Errorf("%+v", one)
	}
	if diff := cmp.Diff(one, must[Member](t)(l.Member(ctx, "builder"))); diff != "" {
		t.Error(diff)
	}
	two, renamed, err := l.AddMember(ctx, Member{Name: "builder", AgentID: "builder@demo"}, false)
	ok(t, err)
	if !renamed || two.Name != "builder-2" || two.AgentID != "builder-2@demo" || two.Color != "green" {
		t.Errorf("%+v", two)
	}
	_, _, err = l.AddMember(ctx, Member{Name: "BUILDER"}, true)
	refused(t, err, team.CodeConflict, team.ReasonNameTaken)
	if !strings.Contains(err.Error(), "team-lead, Builder, builder-2") {
		t.Errorf("does not name the members: %v", err)
	}
	if got := sqlRow[string](t, l.DB(), "SELECT group_concat(role) FROM (SELECT role FROM members ORDER BY rowid)"); got != "lead,member,member" {
		t.Errorf("roles %s", got)
	}
}

func TestFindMember(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	for _, name := range []string{"a", "A", "a@demo", "s-a"} {
		if m := must[Member](t)(l.Member(ctx, name)); m.SessionKey != "s-a" {
			t.Errorf("%s: %+v", name, m)
		}
	}
	_, err := l.Member(ctx, "c")
	refused(t, err, team.CodeNotFound, team.ReasonMemberNotFound)
	if got := team.HintOf(err); got != "members: team-lead, a, b" {
		t.Errorf("hint %q", got)
	}
	_, err = l.MemberBySession(ctx, "a")
	refused(t, err, team.CodeNotFound, team.ReasonMemberNotFound)
}

// A name is available again after its member has left; the old row stays.
func TestRemoveMember(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{{Subject: "1"}, {Subject: "2"}}, "lead"))
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a"}))
	must[Task](t)(l.UpdateTask(ctx, TaskPatch{ID: "2", Owner: ptr("s-a")}))
	ok(t, l.RemoveMember(ctx, "s-a"))
	ok(t, l.RemoveMember(ctx, "s-a"))
	refused(t, l.RemoveMember(ctx, "s-zzz"), team.CodeNotFound, team.ReasonMemberNotFound)
	if n := must[Counts](t)(l.Counts(ctx)); n != (Counts{Pending: 2, Ready: 2}) {
		t.Errorf("%+v", n)
	}
	gone := must[Member](t)(l.Member(ctx, "a"))
	if gone.RemovedAt == 0 {
		t.Errorf("%+v", gone)
	}
	again, renamed, err := l.AddMember(ctx, Member{Name: "a", SessionKey: "s-a2"}, true)
	ok(t, err)
	if renamed || again.Name != "a" {
		t.Errorf("%+v", again)
	}
	if m := must[Member](t)(l.Member(ctx, "a")); m.SessionKey != "s-a2" {
		t.Errorf("found the one that left: %+v", m)
	}
	if m := must[Member](t)(l.MemberBySession(ctx, "s-a")); m.RemovedAt == 0 {
		t.Errorf("%+v", m)
	}
	count := func(removed bool) int { return len(must[[]Member](t)(l.Members(ctx, removed))) }
	if count(false) != 3 || count(true) != 4 {
		t.Errorf("%d and %d members", count(false), count(true))
	}
}

func TestUpdateMember(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a").As("tester")
	ctx := ctxFor(t)
	before := must[Member](t)(l.Member(ctx, "a"))
	spec := team.MemberSpec{Agent: "command", Command: []string{"htop"}}
	got := must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", Role: ptr(team.RoleReviewer), Spec: &spec, Color: ptr("red"),
		Desired: ptr(team.WantStopped), Observed: ptr(team.Starting), Activity: ptr(team.Working), Ready: ptr(true), Generation: ptr("g1"),
		PID: ptr(42), PaneID: ptr("%1"), StartedAt: ptr(int64(9)), Restarts: ptr(1), Failures: ptr(2), NextStart: ptr(int64(10)),
		ExitText: ptr("exit 3"), Reason: ptr("because"), Worktree: ptr("/w"), Branch: ptr("br"), Base: ptr("abc")}))
	want := before
	want.Role, want.Spec, want.Color, want.Desired, want.Observed = team.RoleReviewer, spec, "red", team.WantStopped, team.Starting
	want.Activity, want.ActivityAt, want.Ready, want.Generation = team.Working, got.ActivityAt, true, "g1"
	want.PID, want.PaneID, want.StartedAt, want.Restarts, want.Failures, want.NextStart = 42, "%1", 9, 1, 2, 10
	want.ExitText, want.Reason, want.Worktree, want.Branch, want.Base = "exit 3", "because", "/w", "br", "abc"
	if diff := cmp.Diff(want, got); diff != "" || got.ActivityAt == 0 {
		t.Error(diff)
	}
	if diff := cmp.Diff(got, must[Member](t)(l.Member(ctx, "a"))); diff != "" {
		t.Error(diff)
	}
	_, err := l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", IfGeneration: ptr("g0"), Observed: ptr(team.Running)})
	refused(t, err, team.CodeConflict, team.ReasonStaleGeneration)
	_, err = l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", Observed: ptr(team.Completed), Color: ptr("x")})
	refused(t, err, team.CodeInternal, "illegal_transition")
	if !strings.Contains(err.Error(), "starting") || !strings.Contains(err.Error(), "completed") {
		t.Errorf("does not name both states: %v", err)
	}
	_, err = l.UpdateMember(ctx, MemberPatch{SessionKey: "nobody"})
	refused(t, err, team.CodeNotFound, team.ReasonMemberNotFound)
	got = must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", IfGeneration: ptr("g1"), Observed: ptr(team.Running), PID: ptr(0)}))
	if got.Observed != team.Running || got.PID != 0 || got.Color != "red" {
		t.Errorf("%+v", got)
	}
	must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", Observed: ptr(team.Running)}))
	var what []string
	for _, e := range must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{Who: "tester"})) {
		what = append(what, e.What+" "+e.ID+" "+e.Before+">"+e.After)
	}
	if diff := cmp.Diff([]string{
		"member.desired a running>stopped", "member.state a pending>starting", "member.ready a not ready>ready",
		"member.activity a unknown>working", "member.role a executor>reviewer", "member.state a starting>running",
	}, what); diff != "" {
		t.Error(diff)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	ctx := ctxFor(t)
	start := must[int64](t)(l.LastEvent(ctx))
	seq := must[int64](t)(l.Event(ctx, Event{What: "note.a", ID: "x", Before: "b", After: "c", Data: raw(`{"k":1}`)}))
	must[int64](t)(l.Event(ctx, Event{Who: "me", What: "note.b", At: 7}))
	must[int64](t)(l.Event(ctx, Event{What: "noted"}))
	_, err := l.Event(ctx, Event{})
	refused(t, err, team.CodeInvalid, "")
	for _, tt := range []struct {
		after int64
		limit int
		f     EventFilter
		want  string
	}{
		{start, 0, EventFilter{}, "note.a note.b noted"},
		{start, 2, EventFilter{}, "note.a note.b"},
		{seq, 0, EventFilter{}, "note.b noted"},
		{0, 0, EventFilter{What: "note."}, "note.a note.b"},
		{0, 0, EventFilter{What: "noted"}, "noted"},
		{0, 0, EventFilter{Who: "me"}, "note.b"},
		{0, 0, EventFilter{ID: "x"}, "note.a"},
	} {
		var got []string
		for _, e := range must[[]Event](t)(l.Events(ctx, tt.after, tt.limit, tt.f)) {
			got = append(got, e.What)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	first := must[[]Event](t)(l.Events(ctx, start, 1, EventFilter{}))[0]
	if diff := cmp.Diff(Event{Seq: seq, At: first.At, Who: "supervisor", What: "note.a", ID: "x", Before: "b", After: "c", Data: raw(`{"k":1}`)}, first); diff != "" {
		t.Error(diff)
	}
}

func TestScratchpad(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	ctx := ctxFor(t)
	pad := must[Scratchpad](t)(l.Scratchpad(ctx))
	if string(pad.Doc) != "{}" || pad.Version != 0 {
		t.Errorf("%s v%d", pad.Doc, pad.Version)
	}
	must[Scratchpad](t)(l.MergeScratchpad(ctx, raw(`{"a":{"x":1,"y":2},"b":[1]}`), 0))
	got := must[Scratchpad](t)(l.MergeScratchpad(ctx, raw(`{"a":{"x":3},"c":null}`), 1))
	if string(got.Doc) != `{"a":{"x":3},"b":[1],"c":null}` || got.Version != 2 {
		t.Errorf("%s v%d", got.Doc, got.Version)
	}
	if diff := cmp.Diff(got, must[Scratchpad](t)(l.Scratchpad(ctx))); diff != "" {
		t.Error(diff)
	}
	_, err := l.MergeScratchpad(ctx, raw(`{"a":1}`), 1)
	refused(t, err, team.CodeConflict, team.ReasonScratchpad)
	if err.Error() != "scratchpad_version_conflict: expected 1 current 2" {
		t.Errorf("text: %v", err)
	}
	for _, bad := range []string{`null`, `[1]`, `3`} {
		_, err := l.MergeScratchpad(ctx, raw(bad), 2)
		refused(t, err, team.CodeInvalid, "")
	}
	run := must[Run](t)(l.StartRun(ctx))
	if pad := must[Scratchpad](t)(l.Scratchpad(ctx)); pad.Run != run.ID || run.ID != 2 || pad.Version != 0 {
		t.Errorf("%+v", pad)
	}
}

package services

import (
	"testing"

	"github.com/teamctl/teamctl/internal/sink"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// TestStrandedIsTold: when no member can take any ready task this is written and told once, also by
// the supervisor that follows one which was killed, and again only after a member could. What lasts
// for one check, as in a restart, is not written.
func TestStrandedIsTold(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	b := looptest.NewBus(t, members...)
	s := NewStranded(tm)
	want := func(d team.Desired) {
		t.Helper()
		if _, err := tm.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: members[0].SessionKey, Desired: &d}); err != nil {
			t.Fatal(err)
		}
		s.Event(ledger.Event{What: team.EventMemberDesired, ID: "ann"})
	}
	add := func() {
		t.Helper()
		list := []ledger.NewTask{{Subject: "one", Metadata: []byte(`{"run":"true"}`)}, {Subject: "two", Metadata: []byte(`{"run":"true"}`)}}
		if _, err := tm.Ledger.CreateTasks(t.Context(), list, team.LeadName); err != nil {
			t.Fatal(err)
		}
		s.Event(ledger.Event{What: team.EventTaskCreated, ID: "1"})
	}
	check := func(again bool) {
		t.Helper()
		b.Fire("stranded")
		if !s.Busy() {
			t.Error("the supervisor may leave while it checks")
		}
		b.Next()
		if b.Armed("stranded") != again || s.Busy() != again {
			t.Errorf("checks again: %v, busy: %v; want %v", b.Armed("stranded"), s.Busy(), again)
		}
	}
	told := func(want int) (list []ledger.Event) {
		t.Helper()
		list, err := tm.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: team.EventTaskStranded})
		if err != nil || len(list) != want {
			t.Fatalf("%d events, %v; want %d: %+v", len(list), err, want, list)
		}
		return list
	}
	b.StartService(s)
	want(team.WantStopped)
	check(false) // nothing is ready
	add()
	check(true)
	want(team.WantRunning)
	check(false) // it was restarted
	told(0)
	want(team.WantStopped)
	check(true)
	check(false)
	e := told(1)[0]
	n, ok := noticeOf("t", e)
	if !ok || e.ID != "1" || n.notice.Kind != sink.Task || n.notice.Select != "task:1" || n.notice.Title != "teamctl t: no member can take tasks 1, 2" ||
		n.notice.Text != "ann is stopped: teamctl start ann --team t" {
		t.Errorf("%+v tells %+v", e, n)
	}
	add()
	check(false) // more of them
	s = NewStranded(tm)
	b.StartService(s) // the one before was killed
	check(false)
	told(1)

	r := newNotified(t, members, tm)
	r.n.Event(e)
	if list := r.told(1); list[0].What != team.EventTaskStranded {
		t.Errorf("%+v", list)
	}
	want(team.WantRunning)
	check(false)
	r.n.Event(e) // late: it is over
	r.n.Event(ledger.Event{What: team.EventTaskFailed, ID: "7", Seq: e.Seq + 1})
	if list := r.told(2); list[1].What != team.EventTaskFailed {
		t.Errorf("%+v", list)
	}
	want(team.WantStopped)
	check(true)
	check(false)
	told(2)
	s.Event(ledger.Event{What: team.EventMemberActivity, ID: "ann"})
	s.Event(ledger.Event{What: team.EventTaskStranded, ID: "1"})
	if b.Armed("stranded") {
		t.Error("it checks though nothing has changed")
	}
}

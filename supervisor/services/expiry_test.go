package services

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// An unanswered approval request ends at its deadline, and the requester is notified.
func TestExpiry(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	b := looptest.NewBus(t, members...)
	x := NewExpiry(tm)
	b.StartService(x)
	b.Next()
	if b.Armed("approvals") {
		t.Error("armed without an approval")
	}
	ask := func(id string, deadline time.Time) {
		t.Helper()
		_, err := tm.Ledger.Ask(t.Context(), ledger.AskIn{RequestID: id, Kind: ledger.ApprovePermission, Session: members[0].SessionKey, Subject: "Bash", Deadline: deadline.UnixMilli()})
		if err != nil {
			t.Fatal(err)
		}
		x.Event(ledger.Event{What: "approval.asked"})
	}
	pending := func(want int) {
		t.Helper()
		list, err := tm.Ledger.Approvals(t.Context(), ledger.ApprovalFilter{State: ledger.ApprovalPending})
		if err != nil || len(list) != want {
			t.Fatalf("%d are pending, %v; want %d", len(list), err, want)
		}
	}
	ask("later", time.Now().Add(time.Hour))
	b.Fire("approvals")
	b.Next()
	if d := b.Periods["approvals"]; d < 50*time.Minute || !b.Armed("approvals") {
		t.Errorf("looks again in %s", d)
	}
	pending(1)
	ask("soon", time.Now().Add(time.Millisecond))
	b.Until("it ends", func() bool {
		list, err := tm.Ledger.Messages(t.Context(), ledger.MessageFilter{Recipient: "ann"})
		return err == nil && len(list) == 1 && list[0].Kind == team.KindPermissionResponse
	})
	pending(1)
}

// A program that has joined and does not answer a shutdown request by its deadline leaves the
// roster; the supervisor stays until then.
func TestJoined(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t)
	now := time.Now()
	m, _, err := tm.Ledger.AddMember(t.Context(), ledger.Member{Name: "guest", Role: team.RoleExecutor, Desired: team.WantStopped, Spec: team.MemberSpec{Agent: team.AgentExternal}}, true)
	if err != nil {
		t.Fatal(err)
	}
	b := looptest.NewBus(t)
	j := NewJoined(tm, func() time.Time { return now })
	b.StartService(j)
	b.Next()
	if j.Busy() {
		t.Error("it waits for nobody and stays")
	}
	in, err := JoinedRequest(team.LeadName, m, "done", now.Add(time.Minute))
	if err == nil {
		_, _, err = tm.Mailer().Post(t.Context(), in)
	}
	if err != nil {
		t.Fatal(err)
	}
	j.Asked()
	b.Fire(joinedTimer)
	b.Next()
	if d := b.Periods[joinedTimer]; !j.Busy() || d < time.Minute || d > time.Minute+time.Second {
		t.Fatalf("busy %v, again in %s", j.Busy(), d)
	}
	now = now.Add(2 * time.Minute)
	b.Fire(joinedTimer)
	b.Next()
	if row, err := tm.Ledger.MemberBySession(t.Context(), m.SessionKey); err != nil || row.RemovedAt == 0 || j.Busy() {
		t.Errorf("%+v, %v; busy %v", row, err, j.Busy())
	}
}

package tool

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// Every field of the documented runtime record is known for each member, and no field has a value
// of another member.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	c := map[string]Caller{}
	for _, name := range []string{"idle", "asks", "stops", "works"} {
		c[name] = r.as(name, team.RoleExecutor)
	}
	patch := func(name string, p ledger.MemberPatch) {
		t.Helper()
		p.SessionKey = c[name].Session
		if _, err := r.Ledger.UpdateMember(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	idle, works, stop, long := team.Idle, team.Working, team.WantStopped, time.Now().Add(-time.Hour).UnixMilli()
	patch("idle", ledger.MemberPatch{Activity: &idle})
	patch("stops", ledger.MemberPatch{Desired: &stop})
	patch("works", ledger.MemberPatch{Activity: &works, ActivityAt: &long})
	b := r.Layout.Bundle("works")
	if err := os.MkdirAll(string(b), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.Log(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(b.Log(), time.Time{}, time.UnixMilli(long)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Send(ctx, Person(), SendIn{Recipient: "idle", Content: "hello"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Ledger.Ask(ctx, ledger.AskIn{Session: c["asks"].Session, Kind: ledger.ApprovePlan, RequestID: "plan-1", Subject: "a plan"}); err != nil {
		t.Fatal(err)
	}
	spent := map[string]quota.Spent{c["idle"].Session: {Name: "idle", Conversations: map[string]team.Usage{"x": {InputTokens: 5, OutputTokens: 7}}}}
	if err := r.Ledger.Set(ctx, quota.SettingUsage, spent); err != nil {
		t.Fatal(err)
	}

	members, err := r.Ledger.Members(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.Runtimes(ctx, members)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Runtime{}
	for i, m := range members {
		got[m.Name] = list[i]
	}
	delete(got, team.LeadName) // it is told of the plan
	want := map[string]Runtime{
		"idle":  {Idle: true, PendingMessages: 2, Tokens: 12},
		"asks":  {AwaitingPlanApproval: true},
		"stops": {ShutdownRequested: true},
		"works": {StalledSince: long},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	left := r.as("left", team.RoleExecutor)
	if err := r.Ledger.RemoveMember(ctx, left.Session); err != nil {
		t.Fatal(err)
	}
	past := quota.Spent{Name: "left", Conversations: map[string]team.Usage{"x": {InputTokens: 4}, "y": {InputTokens: 5}}}
	if err := r.Ledger.Set(ctx, quota.SettingPast(left.Session), past); err != nil {
		t.Fatal(err)
	}
	row, err := r.Ledger.MemberBySession(ctx, left.Session)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := r.Runtimes(ctx, []ledger.Member{row}); err != nil || list[0].Tokens != 9 {
		t.Errorf("one that has left: %+v, %v", list, err)
	}
	if _, err := r.consume(ctx, c["idle"]); err != nil {
		t.Fatal(err)
	}
	if list, err = r.Runtimes(ctx, members); err != nil || list[1].PendingMessages != 0 {
		t.Errorf("after it has read its mail: %+v, %v", list[1], err)
	}
}

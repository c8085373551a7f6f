package mail

import (
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Idle notices that newer ones have replaced are marked in the lead's mailbox when it is
// pruned: a lead that reads nothing does not collect them.
func TestReplacedNoticesLeaveTheFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	r.member(ledger.Member{Name: "a", Spec: team.MemberSpec{Agent: team.AgentExternal}})
	mailer := r.mailer()
	for range KeepRead + 20 {
		_, _, err := mailer.Post(ctx, ledger.NewMessage{Kind: team.KindIdle, From: "a", To: team.LeadName,
			Text: `{"type":"idle_notification","from":"a","timestamp":"x"}`})
		if err != nil {
			t.Fatal(err)
		}
	}
	lead, err := r.led.Member(ctx, team.LeadName)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mailer.Prune(ctx, lead); err != nil {
		t.Fatal(err)
	}
	unread, err := r.box(team.LeadName).Unread(ctx)
	if err != nil || len(unread) != 1 {
		t.Errorf("%d are unread, %v", len(unread), err)
	}
	if all, err := r.box(team.LeadName).Entries(ctx); err != nil || len(all) != KeepRead+1 {
		t.Errorf("%d entries, %v", len(all), err)
	}
}

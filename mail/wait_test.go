package mail

import (
	"os"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A program that was killed while it held the lock of a mailbox holds up a sender until
// that lock is abandoned, and no longer: the message is mailed then.
func TestMailWaitsForAnAbandonedLock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	r.member(ledger.Member{Name: "a", Spec: team.MemberSpec{Agent: team.AgentExternal}})
	post := func() []ledger.Delivery {
		t.Helper()
		_, ds, err := r.mailer().Post(ctx, ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	post() // makes the directories
	if err := os.Mkdir(r.box("a").Path()+".lock", 0o755); err != nil {
		t.Fatal(err)
	}
	if ds := post(); ds[0].State != team.Mailed {
		t.Errorf("given up: %+v", ds[0])
	}
}

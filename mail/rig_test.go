package mail

import (
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a team with a ledger of its own, and without a supervisor.
type rig struct {
	*testing.T
	layout team.Layout
	led    *ledger.Ledger
}

func newRig(t *testing.T) *rig {
	t.Helper()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	for _, d := range []string{l.Inboxes(), l.Locks(), l.Members()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	db, err := ledger.Open(t.Context(), l.Ledger(), ledger.Options{Create: true, LockPath: l.LedgerLock(), BusyTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r := &rig{T: t, layout: l, led: ledger.New(db, ledger.Direct(db))}
	if _, err := r.led.CreateTeam(t.Context(), ledger.TeamRow{Key: "t", Name: "t", LeadSession: team.LeadSessionKey("", "t")}); err != nil {
		t.Fatal(err)
	}
	r.member(ledger.Member{SessionKey: team.LeadSessionKey("", "t"), Name: team.LeadName, Role: team.RoleLeader})
	return r
}

// member adds one to the roster that has no process.
func (r *rig) member(m ledger.Member) ledger.Member {
	r.Helper()
	m.Desired, m.Observed, m.Activity, m.Spec.WorktreeMode = team.WantStopped, team.Pending, team.ActivityUnknown, "none"
	row, _, err := r.led.AddMember(r.Context(), m, true)
	if err != nil {
		r.Fatal(err)
	}
	return row
}

func (r *rig) mailer() Mailer { return Mailer{Layout: r.layout, Ledger: r.led} }

func (r *rig) box(name string) *inbox.Box {
	r.Helper()
	b, err := r.mailer().Box(name)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// mailed posts messages to the member a.
func (r *rig) mailed(texts ...string) (Mailer, ledger.Member, *inbox.Box) {
	r.Helper()
	to := r.member(ledger.Member{SessionKey: team.TeammateSessionKey("a"), Name: "a"})
	m := r.mailer()
	for _, text := range texts {
		if _, _, err := m.Post(r.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text}); err != nil {
			r.Fatal(err)
		}
	}
	return m, to, r.box("a")
}

// texts are what a mailbox has, in its order.
func (r *rig) texts(box *inbox.Box) (out []string) {
	r.Helper()
	entries, err := box.Entries(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Text)
	}
	return out
}

func (r *rig) holds(box *inbox.Box, want ...string) {
	r.Helper()
	texts := r.texts(box)
	slices.Sort(texts)
	if !slices.Equal(texts, want) {
		r.Errorf("the mailbox holds %v; want %v", texts, want)
	}
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it never happens")
		}
	}
}

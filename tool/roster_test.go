package tool

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// adopter finds that a member has ended when it is asked.
type adopter struct {
	Supervisor
	r       talkRig
	session string
	asked   int
}

func (a *adopter) Status(ctx context.Context) (ledger.SupervisorStatus, error) {
	a.asked++
	exited := team.Exited
	_, err := a.r.Ledger.UpdateMember(ctx, ledger.MemberPatch{SessionKey: a.session, Observed: &exited})
	return ledger.SupervisorStatus{}, err
}

// A supervisor that was just started (by a teammate, for example) holds the lock before it knows
// which members live: until then the ledger has what an earlier one saw.
func TestRosterWaitsForAdoption(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	r.member("a", team.RoleExecutor)
	m, err := r.Ledger.Member(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	running := team.WantRunning
	if _, err := r.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, Desired: &running}); err != nil {
		t.Fatal(err)
	}
	lock, ok, err := filelock.TryLock(r.Layout.SupervisorLock())
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer func() { _ = lock.Unlock() }()
	s := &adopter{r: r, session: m.SessionKey}
	r.Env.Dial = func(context.Context, team.Layout, bool) (Supervisor, error) { return s, nil }
	state := func(file string) team.Observed {
		t.Helper()
		if err := os.WriteFile(r.Layout.SupervisorPID(), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		members, pid, err := r.Members(t.Context())
		if err != nil || pid != os.Getpid() || len(members) != 2 {
			t.Fatalf("%d members, pid %d, %v", len(members), pid, err)
		}
		return members[1].Observed
	}
	pid := fmt.Sprintf("%d\n", os.Getpid())
	if got := state(pid + team.SupervisorAdopted + "\n"); got != team.Running || s.asked != 0 {
		t.Errorf("with one that has adopted: %s, asked %d times", got, s.asked)
	}
	if got := state(pid); got != team.Exited || s.asked != 1 {
		t.Errorf("with one that has not: %s, asked %d times", got, s.asked)
	}
}

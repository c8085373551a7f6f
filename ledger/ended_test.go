package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// The end of a process is recorded once, whatever follows it; a new start
// clears it.
func TestEndedAt(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	move := func(o team.Observed, at *int64) Member {
		t.Helper()
		return must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", Observed: &o, EndedAt: at}))
	}
	move(team.Starting, nil)
	if m := move(team.Running, nil); m.EndedAt != 0 {
		t.Errorf("it runs and has ended at %d", m.EndedAt)
	}
	ended := move(team.Exited, nil)
	if ended.EndedAt == 0 {
		t.Fatal("it has ended at no time")
	}
	if m := move(team.Failed, nil); m.EndedAt != ended.EndedAt {
		t.Errorf("given up, it has ended at %d, not %d", m.EndedAt, ended.EndedAt)
	}
	if m := must[Member](t)(l.Member(ctx, "a")); m.EndedAt != ended.EndedAt {
		t.Errorf("read again: %d", m.EndedAt)
	}
	move(team.Starting, nil)
	if m := move(team.Running, nil); m.EndedAt != 0 {
		t.Errorf("started again, it has ended at %d", m.EndedAt)
	}
	if m := move(team.Killed, ptr(int64(5))); m.EndedAt != 5 {
		t.Errorf("said to have ended at 5: %d", m.EndedAt)
	}
}

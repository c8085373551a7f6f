package services

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// The feedback of a hook that blocks an idle member is mailed to it, MaxIdleBlocks times in a row;
// a claim by the member resets the count.
func TestHooks(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	text := "hooks: {TeammateIdle: 'echo go on >&2; exit 2'}\n"
	if err := os.WriteFile(filepath.Join(tm.Layout.Home.Dir, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := looptest.NewBus(t, members...)
	h := NewHooks(tm, os.Environ())
	b.StartService(h)
	session := members[0].SessionKey
	idle := func() {
		t.Helper()
		h.Event(ledger.Event{What: "member.activity", ID: "ann", After: string(team.Idle)})
		b.Done()
	}
	fed := func(want int) {
		t.Helper()
		list, err := tm.Ledger.Messages(t.Context(), ledger.MessageFilter{Recipient: "ann"})
		if err != nil || len(list) != want {
			t.Fatalf("%d messages, %v; want %d", len(list), err, want)
		}
	}
	idle()
	if h.blocks[session] != 1 {
		t.Errorf("blocked %d times", h.blocks[session])
	}
	fed(1)
	h.blocks[session] = MaxIdleBlocks
	idle()
	fed(1) // left idle
	h.Event(ledger.Event{What: "task.claimed", Who: "ann"})
	idle()
	fed(2)
	h.Event(ledger.Event{What: "member.activity", ID: "ann", After: string(team.Working)})
	h.Event(ledger.Event{What: "member.activity", ID: "nobody", After: string(team.Idle)})
	b.Done()
	fed(2)
}

package services

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// What waits for a person is sent to every sink, one batch at a time; messages between members are
// not sent, and a failing sink is recorded as an event.
func TestNotifications(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t)
	out := filepath.Join(t.TempDir(), "out")
	if err := tm.Ledger.Set(t.Context(), SettingNotify, []string{"command:exit 3", "command:cat >> " + out}); err != nil {
		t.Fatal(err)
	}
	b := looptest.NewBus(t)
	n := NewNotifications(tm)
	b.StartService(n)
	n.Event(ledger.Event{What: "message.posted", Who: "ann"})
	n.Event(ledger.Event{What: "member.state", ID: "ann", After: string(team.Running)})
	if n.sending || len(n.queue) > 0 {
		t.Fatalf("sending %v, queued %v", n.sending, n.queue)
	}
	n.Event(ledger.Event{What: "member.state", ID: "ann", After: string(team.Failed)})
	n.Event(ledger.Event{What: "task.failed", ID: "7"})
	n.Event(ledger.Event{What: "task.failed", ID: "8"})
	if !n.sending || len(n.queue) != 2 {
		t.Errorf("sending %v, queued %v", n.sending, n.queue)
	}
	b.Next()
	b.Next()
	if n.sending || len(n.queue) > 0 {
		t.Errorf("sending %v, queued %v", n.sending, n.queue)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Count(text, "\n") != 3 || !strings.Contains(text, "member.failed") || !strings.Contains(text, "task 8") {
		t.Errorf("sent %s", text)
	}
	failed, err := tm.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: "notify.failed"})
	if err != nil || len(failed) != 2 || !strings.Contains(string(failed[0].Data), "exit 3") { // one for each batch
		t.Errorf("%+v, %v", failed, err)
	}
}

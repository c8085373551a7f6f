package courier

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// Claude Code reports an interrupt only in sessions/PID.json, and creates that directory with the
// first session.
func TestSessionStatusIsSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := Facts{
		Bundle: team.Bundle(t.TempDir()), PID: 4242, Log: slog.New(slog.DiscardHandler), hub: newHub(),
		Link: adapter.Link{Agent: adapter.Claude, Config: dir, Ways: []adapter.Way{adapter.WayHooks}},
	}
	defer f.hub.close()
	w := couriertest.NewWatcher()
	ch, err := openHooks(context.Background(), f, nil, w.Report)
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	write := func(status string) {
		t.Helper()
		sessions := filepath.Join(dir, "sessions")
		if err := os.MkdirAll(sessions, 0o700); err != nil {
			t.Fatal(err)
		}
		data := []byte(`{"pid":4242,"sessionId":"s","status":"` + status + `","waitingFor":"permission prompt"}`)
		if err := os.WriteFile(filepath.Join(sessions, strconv.Itoa(f.PID)+".json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("busy")
	if err := WriteSeen(f.Bundle, SeenFile{Generation: "g"}); err != nil { // a hook was called
		t.Fatal(err)
	}
	for status, want := range map[string]team.Activity{"busy": team.Working, "idle": team.Idle, "waiting": team.Waiting} {
		from := w.Mark()
		if status == "busy" {
			from = 0
		}
		write(status)
		w.Wait(t, status, from, func(o team.Observation) bool { return o.Tier == team.TierChannel && o.Activity == want })
	}
}

// A waiting hook may be killed after it was relied on: the mail is tried again even without
// further observations of the agent.
func TestWaiterThatIsKilled(t *testing.T) {
	t.Parallel()
	f := Facts{
		Bundle: team.Bundle(t.TempDir()), Log: slog.New(slog.DiscardHandler), hub: newHub(),
		Link: adapter.Link{Agent: adapter.Claude, Ways: []adapter.Way{adapter.WayHooks}},
	}
	defer f.hub.close()
	w := couriertest.NewWatcher()
	ch, err := openHooks(context.Background(), f, nil, w.Report)
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	lock, err := filelock.Lock(t.Context(), WaitLock(f.Bundle))
	if err != nil {
		t.Fatal(err)
	}
	if out := ch.Deliver(t.Context(), []team.Mail{{ID: "m"}}); len(out) != 1 || out[0].State != "" {
		t.Fatalf("the waiter's mail is %+v", out)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	w.Wait(t, "another try", 0, func(o team.Observation) bool { return o.Source == "held mail is tried again" })
}

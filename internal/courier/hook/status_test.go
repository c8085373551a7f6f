package hook

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// Claude Code reports an interrupt only in sessions/PID.json, and creates that directory with the
// first session.
func TestSessionStatusIsSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := courier.Facts{
		Bundle: team.Bundle(t.TempDir()), PID: 4242, Log: slog.New(slog.DiscardHandler),
		Link: adapter.Link{Agent: adapter.Claude, Config: dir, Ways: []adapter.Way{adapter.WayHooks}},
	}
	f = prepared(t, f, nil)
	w := couriertest.NewWatcher()
	ch, err := Open(context.Background(), f, nil, w.Report)
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
	if err := courier.WriteSeen(f.Bundle, courier.SeenFile{Generation: "g"}); err != nil { // a hook was called
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
	f := courier.Facts{
		Bundle: team.Bundle(t.TempDir()), Log: slog.New(slog.DiscardHandler),
		Link: adapter.Link{Agent: adapter.Claude, Ways: []adapter.Way{adapter.WayHooks}},
	}
	f = prepared(t, f, nil)
	w := couriertest.NewWatcher()
	ch, err := Open(context.Background(), f, nil, w.Report)
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	lock, err := filelock.Lock(t.Context(), waitLock(f.Bundle))
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

// Claude Code reports in its session file that it is at rest before its hook reports that the turn
// has failed. The channel waits for the hook, and only briefly after an interrupt, which no hook
// reports.
func TestSessionWaitsForTheHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := courier.Facts{
		Bundle: team.Bundle(t.TempDir()), Generation: "g", PID: 4242, Log: slog.New(slog.DiscardHandler),
		Link: adapter.Link{Agent: adapter.Claude, Config: dir, Ways: []adapter.Way{adapter.WayHooks}},
	}
	f = prepared(t, f, nil)
	write := func(status string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "sessions", "4242.json"), []byte(`{"pid":4242,"status":"`+status+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hook := func(o team.Observation) {
		t.Helper()
		o.Tier = team.TierHook
		if err := courier.WriteSeen(f.Bundle, courier.SeenFile{Generation: "g", Seen: o}); err != nil {
			t.Fatal(err)
		}
	}
	hook(team.Observation{Activity: team.Working})
	write("busy")
	w := couriertest.NewWatcher()
	ch, err := Open(context.Background(), f, nil, w.Report)
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	channel := func(a team.Activity) func(team.Observation) bool {
		return func(o team.Observation) bool { return o.Tier == team.TierChannel && o.Activity == a }
	}
	w.Wait(t, "busy", 0, channel(team.Working))
	from := w.Mark()
	write("idle") // without a hook
	w.Wait(t, "idle", from, channel(team.Idle))
	from = w.Mark()
	write("busy")
	w.Wait(t, "busy again", from, channel(team.Working))
	from = w.Mark()
	write("idle")
	hook(team.Observation{Activity: team.Idle, Failed: "bad thing"})
	w.Wait(t, "idle once more", from, channel(team.Idle))
}

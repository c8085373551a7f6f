package courier

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// Claude Code reports in its session file that it is at rest before its hook reports that the turn
// has failed. The channel waits for the hook, and only briefly after an interrupt, which no hook
// reports.
func TestSessionWaitsForTheHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := Facts{
		Bundle: team.Bundle(t.TempDir()), Generation: "g", PID: 4242, Log: slog.New(slog.DiscardHandler), hub: newHub(),
		Link: adapter.Link{Agent: adapter.Claude, Config: dir, Ways: []adapter.Way{adapter.WayHooks}},
	}
	defer f.hub.close()
	write := func(status string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "sessions", "4242.json"), []byte(`{"pid":4242,"status":"`+status+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hook := func(o team.Observation) {
		t.Helper()
		o.Tier = team.TierHook
		if err := WriteSeen(f.Bundle, SeenFile{Generation: "g", Seen: o}); err != nil {
			t.Fatal(err)
		}
	}
	hook(team.Observation{Activity: team.Working})
	write("busy")
	w := couriertest.NewWatcher()
	ch, err := openHooks(context.Background(), f, nil, w.Report)
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

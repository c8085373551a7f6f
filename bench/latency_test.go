package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/internal/strays"
)

func TestMain(m *testing.M) {
	if status, ok := fakecli.Main(os.Args); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

func TestLatencyFigures(t *testing.T) {
	l := latencies{way: "hooks", pause: 500 * time.Millisecond}
	l.idle.ours, l.idle.typed = []time.Duration{30 * time.Millisecond}, []time.Duration{20 * time.Millisecond}
	l.mid.ours = boundary{late: []time.Duration{4 * time.Millisecond}}
	l.mid.typed = boundary{late: []time.Duration{8 * time.Millisecond, 8 * time.Millisecond}, ends: 1}
	l.mid.none = boundary{late: []time.Duration{2 * time.Millisecond}}
	var got []figure
	for _, f := range l.figures("claude 2") {
		got = append(got, figure{what: f.what, floor: f.floor, bare: f.bare, ours: f.ours, unit: f.unit})
	}
	typed, queued := "paste, 500 ms, Enter", "typed, after the turn in 1 of 2"
	want := []figure{
		{what: "claude 2, hooks, idle, p50", floor: typed, bare: 20, ours: 30, unit: "ms"},
		{what: "claude 2, hooks, idle, p90", floor: typed, bare: 20, ours: 30, unit: "ms"},
		{what: "claude 2, hooks, mid-turn, at the tool boundary, p50", floor: queued, bare: 8, ours: 4, unit: "ms"},
		{what: "claude 2, hooks, mid-turn, at the tool boundary, p90", floor: queued, bare: 8, ours: 4, unit: "ms"},
		{what: "claude 2, tool boundary without mail, p50", ours: 2, unit: "ms"},
		{what: "claude 2, tool boundary without mail, p90", ours: 2, unit: "ms"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(figure{}, goal{})); d != "" {
		t.Errorf("figures (-want +got):\n%s", d)
	}
}

// One round of each with a stand-in: what is posted and typed, idle and in mid-turn,
// comes to the model.
func TestLatency(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	dir := t.TempDir()
	program, err := strays.Program(dir)
	if err != nil {
		t.Fatal(err)
	}
	e := env{teamctl: program, log: t.Output()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k := latencyKind{cache: filepath.Join(dir, "cache"), base: dir, busy: 500 * time.Millisecond, settled: 100 * time.Millisecond, limit: 5 * time.Minute}
	standIns, err := agentlab.StandIns(self, k.cache)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEAMCTL_RUNTIME_DIR", "") // put back afterwards
	s, err := measureLatency(t.Context(), e, k, standIns[1], 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if s.way != "app-server" || len(s.idle.ours) != 1 || len(s.idle.typed) != 1 || s.idle.ours[0] <= 0 || s.idle.typed[0] <= 0 {
		t.Errorf("idle: %+v by %s", s.idle, s.way)
	}
	for what, b := range map[string]boundary{"mailed": s.mid.ours, "typed": s.mid.typed, "none": s.mid.none} {
		if len(b.late) != 1 || b.late[0] > k.limit {
			t.Errorf("%s in mid-turn: %+v", what, b)
		}
	}
}

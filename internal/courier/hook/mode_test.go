package hook

import (
	"log/slog"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

func TestHooksSayWhenAModeTakesEffect(t *testing.T) {
	t.Parallel()
	r := couriertest.New(t)
	f := courier.Facts{Bundle: team.Bundle(r.Dir), Generation: "g1", Log: slog.New(slog.DiscardHandler), Link: adapter.Link{Agent: adapter.Claude, Version: "2.1.329", Mode: team.ModePlan, Ways: []adapter.Way{adapter.WayHooks}}}
	open := func() {
		t.Helper()
		ch, err := Open(t.Context(), f, nil, r.Report)
		r.Use(t, ch, err)
	}
	open()
	for mode, want := range map[team.Mode]string{team.ModePlan: "", team.ModeAcceptEdits: adapter.WithItsNextRequest} {
		if when := r.Ch.SetMode(mode); when != want {
			t.Errorf("%s: %q", mode, when)
		}
	}
	// The agent's own report counts.
	if err := courier.WriteSeen(f.Bundle, courier.SeenFile{Generation: "g1", Seen: team.Observation{Mode: team.ModeAcceptEdits}}); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[team.Mode]string{team.ModePlan: adapter.WithItsNextRequest, team.ModeAcceptEdits: ""} {
		if when := r.Ch.SetMode(mode); when != want {
			t.Errorf("it says acceptEdits; %s: %q", mode, when)
		}
	}
	r.Ch.Close()
	f.Link.Agent = adapter.Gemini
	f.Generation = "g2"
	open()
	if when := r.Ch.SetMode(team.ModeDefault); when != adapter.AtItsNextStart {
		t.Errorf("Gemini CLI: %q", when)
	}
}

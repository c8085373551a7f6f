package courier

import (
	"context"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// R158: the mode of an approved plan goes with the next turn of a Codex that runs, with
// what it may write to; one that nobody has changed is not said at all.
func TestAppServerTakesAMode(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	r.facts.Mode, r.facts.Link.Mode, r.facts.Link.Writable = team.ModePlan, team.ModePlan, []string{"/repo/.git"}
	s := startCodex(t, r, false)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	turn := func(id, want string) {
		t.Helper()
		r.deliver(t, false, id, "@@say "+id)
		r.wait(t, "the receipt", 0, receipt(id))
		if got := s.Policy(); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	turn("m1", `{"approval":"","sandbox":null}`)
	for range 2 {
		if when := r.ch.SetMode(team.ModeDefault); when != adapter.WithItsNextMessage {
			t.Errorf("it takes effect %q", when)
		}
	}
	const write = `{"approval":"on-request","sandbox":{"type":"workspaceWrite","writableRoots":["/repo/.git"]}}`
	turn("m2", write)
	if when := r.ch.SetMode(team.ModeAcceptEdits); when != "" {
		t.Errorf("the same to it takes effect %q", when)
	}
	r.ch.SetMode(team.ModePlan)
	turn("m3", `{"approval":"on-request","sandbox":{"type":"readOnly"}}`)
	r.ch.Close()

	// The next supervisor knows from the ledger that its mode is not that of its start.
	r.facts.Mode = team.ModeDontAsk
	from := r.mark()
	r.open(t, openAppServer)
	r.wait(t, "the thread", from, ready)
	turn("m4", `{"approval":"never","sandbox":{"type":"workspaceWrite","writableRoots":["/repo/.git"]}}`)
}

// A prompt that names no agent would go to the default one, whatever opencode was started
// with: one that plans is told so with each, and no more once its plan was approved.
func TestServerTakesAMode(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	r.facts.Mode, r.facts.Link.Mode = team.ModePlan, team.ModePlan
	s := startOpenCode(t, r, addr, false)
	r.open(t, openServer)
	r.wait(t, "the session", 0, up)
	r.deliver(t, false, "m1", "@@say one")
	if when := r.ch.SetMode(team.ModeAcceptEdits); when != adapter.AtItsNextStart {
		t.Errorf("what is in its configuration takes effect %q", when)
	}
	if when := r.ch.SetMode(team.ModeDefault); when != adapter.WithItsNextMessage {
		t.Errorf("it takes effect %q", when)
	}
	r.deliver(t, false, "m2", "@@say two")
	if got := s.Agents(); !slices.Equal(got, []string{"plan", "build"}) {
		t.Errorf("prompts for %q", got)
	}
}

func TestHooksSayWhenAModeTakesEffect(t *testing.T) {
	t.Parallel()
	r := newRig(t, adapter.Link{Agent: adapter.Claude, Version: "2.1.329", Mode: team.ModePlan, Ways: []adapter.Way{adapter.WayHooks}})
	r.open(t, openHooks)
	for mode, want := range map[team.Mode]string{team.ModePlan: "", team.ModeAcceptEdits: adapter.WithItsNextRequest} {
		if when := r.ch.SetMode(mode); when != want {
			t.Errorf("%s: %q", mode, when)
		}
	}
	// Its own word counts.
	if err := WriteSeen(r.facts.Bundle, SeenFile{"g1", team.Observation{Mode: team.ModeAcceptEdits}}); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[team.Mode]string{team.ModePlan: adapter.WithItsNextRequest, team.ModeAcceptEdits: ""} {
		if when := r.ch.SetMode(mode); when != want {
			t.Errorf("it says acceptEdits; %s: %q", mode, when)
		}
	}
	r.ch.Close()
	r.facts.Link.Agent = adapter.Gemini
	r.facts.Generation = "g2"
	r.open(t, openHooks)
	if when := r.ch.SetMode(team.ModeDefault); when != adapter.AtItsNextStart {
		t.Errorf("Gemini CLI: %q", when)
	}
}

// An agent on the protocol is put into its own mode of the kind, and the answer to its
// plan says in which it goes on.
func TestACPModes(t *testing.T) {
	t.Parallel()
	answer := team.Reply{Allow: true, Mode: team.ModeAcceptEdits}
	var asked team.Ask
	r, a, _ := acpRig(t, func(_ context.Context, ask team.Ask) (team.Reply, error) {
		asked = ask
		return answer, nil
	})
	set := func(mode team.Mode, has bool) {
		t.Helper()
		if got, err := a.SetMode(t.Context(), mode); got != has || err != nil {
			t.Fatalf("%s: %v, %v", mode, got, err)
		}
	}
	turn := func(script string) {
		t.Helper()
		if _, err := a.Prompt(t.Context(), script, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	set(team.ModeBypass, false)
	set(team.ModePlan, true)
	turn("@@shell touch it")
	if exists(r.dir, "it") || asked.ID != "" {
		t.Fatal("it has changed something in plan mode")
	}
	turn(`@@call ExitPlanMode {"plan":"# touch it","planFilePath":"/plans/a.md"}`)
	if asked.For != team.WaitPlan || asked.Plan != "# touch it" || asked.PlanPath != "/plans/a.md" {
		t.Errorf("asked %+v", asked)
	}
	if a.nowMode() != "acceptEdits" {
		t.Errorf("it goes on in %s", a.nowMode())
	}
	set(team.ModePlan, true)
	set(team.ModeDefault, true)
	answer = team.Reply{Allow: true}
	turn("@@shell touch it")
	if !exists(r.dir, "it") || asked.For != team.WaitPermission {
		t.Errorf("it may not after its plan; asked %+v", asked)
	}
}

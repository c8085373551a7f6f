package program

import (
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestModelOf checks the order of precedence: the session's own model, that of its spec, that of
// the team, that of config.yaml.
func TestModelOf(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.life(t.TempDir())
	is := func(want string, s ledger.Session, spec team.AgentSpec) {
		t.Helper()
		if ref, err := p.modelOf(t.Context(), s, spec, r.cfg); err != nil || ref.String() != want {
			t.Errorf("the model is %s, %v, want %s", ref, err, want)
		}
	}
	own := ledger.Session{ProviderOverride: "script", ModelOverride: "own"}
	spec := team.AgentSpec{Defaults: team.SpecDefaults{Model: team.SpecModel{Provider: "script", Model: "spec"}}}
	is(r.cfg.Default.String(), ledger.Session{}, team.AgentSpec{})
	if err := r.led.Set(t.Context(), tool.SetModel, "script/team"); err != nil {
		t.Fatal(err)
	}
	is("script/team", ledger.Session{}, team.AgentSpec{})
	is("script/spec", ledger.Session{}, spec)
	is("script/own", own, spec)
}

package supervisor

import (
	"slices"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestHiddenPanesThatAreGone: config.json lists a hidden pane only while a member is in it, and a
// new member's pane is not mistaken for one that was hidden under its id.
func TestHiddenPanesThatAreGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stale := []string{"%1001", "%1003", "%77"} // the second member's pane will be %1002
	if _, err := r.led.UpdateTeam(t.Context(), ledger.TeamPatch{Hidden: &stale}); err != nil {
		t.Fatal(err)
	}
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	r.hidden([]string{"%1003", "%77"}, nil)

	hide := []string{"%1001", "%77"}
	if _, err := ask(t.Context(), s, func(reply func(struct{}, error)) {
		err := s.setHidden(hide)
		s.publisher.When(func() { reply(struct{}{}, err) })
	}); err != nil {
		t.Fatal(err)
	}
	r.spawn(s, "b", team.RestartNever)
	r.hidden(hide, []string{"%1001"})

	r.m.agent(r.layout, "a").end(backends.Exit{Known: true})
	r.waitState("a", team.Completed)
	if _, err := s.StartMembers(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	r.hidden([]string{"%77"}, nil)
}

// hidden checks what the ledger and config.json list.
func (r *rig) hidden(ledger, config []string) {
	r.Helper()
	row, err := r.led.Team(r.Context())
	if err != nil || !slices.Equal(row.Hidden, ledger) {
		r.Errorf("the ledger has %v, want %v (%v)", row.Hidden, ledger, err)
	}
	cfg, err := team.ReadConfig(r.layout.Config())
	if err != nil || !slices.Equal(cfg.HiddenPaneIDs, config) {
		r.Errorf("config.json has %v, want %v (%v)", cfg.HiddenPaneIDs, config, err)
	}
}

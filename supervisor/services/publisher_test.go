package services

import (
	"fmt"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// An answer waits for a write that began after its change, and changes meanwhile result in one
// write.
func TestPublisherCoversWhatWasWanted(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t, "ann")
	b := looptest.NewBus(t)
	p := NewPublisher(tm)
	if err := p.Start(b.Context(), b); err != nil {
		t.Fatal(err)
	}
	var told []string
	tell := func(what string) { p.When(func() { told = append(told, what) }) }
	is := func(want string) {
		t.Helper()
		if fmt.Sprint(told) != want {
			t.Fatalf("told %v, want %s", told, want)
		}
	}
	tell("at once")
	p.Publish()
	tell("first")
	p.Publish() // during the first write
	p.Publish()
	tell("second")
	is("[at once]")
	b.Next()
	is("[at once first]")
	b.Fire("publish") // the rest is over: the second begins
	b.Next()
	is("[at once first second]")
	if p.wanted || p.writing {
		t.Errorf("wanted %v, writing %v", p.wanted, p.writing)
	}
	// Close writes pending changes.
	b.Fire("publish")
	name := "what it is for"
	if _, err := tm.Ledger.UpdateTeam(t.Context(), ledger.TeamPatch{Description: &name}); err != nil {
		t.Fatal(err)
	}
	p.wanted = true
	tell("last")
	p.Close()
	is("[at once first second last]")
	if cfg, err := team.ReadConfig(tm.Layout.Config()); err != nil || cfg.Description != name || len(cfg.Members) != 2 {
		t.Errorf("config.json has %+v, %v", cfg, err)
	}
}

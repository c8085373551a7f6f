package main

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestStalledInPs checks that ps reports a stalled teammate, and for how long it has stalled.
func TestStalledInPs(t *testing.T) {
	t.Parallel()
	a := &app{out: &output{}}
	m := psMember{Member: ledger.Member{Observed: team.Running, Activity: team.Working}}
	if got := a.activity(m); got != "working" {
		t.Errorf("%q", got)
	}
	m.StalledSince = time.Now().Add(-12 * time.Minute).UnixMilli()
	if got := a.activity(m); !strings.HasPrefix(got, "working (stalled 12m") {
		t.Errorf("%q", got)
	}
}

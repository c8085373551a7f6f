package main

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestPsAges checks that SINCE is the time since a member has its activity, and that a watch reads
// again when it changes.
func TestPsAges(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	waits := ledger.Member{Name: "ann", Observed: team.Running, Activity: team.Waiting, StartedAt: ago(5 * time.Hour), ActivityAt: ago(150 * time.Second)}
	ended := ledger.Member{Name: "bob", Observed: team.Completed, StartedAt: ago(5 * time.Hour), ActivityAt: ago(4 * time.Hour), EndedAt: ago(3*time.Hour + time.Minute)}
	lead := ledger.Member{Name: team.LeadName, Observed: team.Running, JoinedAt: ago(time.Second)}
	members := []psMember{{Member: lead}, {Member: waits}, {Member: ended}}

	var text strings.Builder
	a := &app{out: &output{stdout: &text}}
	a.psTable(members, false)
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], " 2m ") || !strings.Contains(lines[2], " 3h ") {
		t.Errorf("the ages are not 2m and 3h:\n%s", text.String())
	}
	x := &tool.Team{Layout: team.Home{Dir: t.TempDir()}.Team("f")}
	if due := psDue(x, members); due <= 0 || due > 30*time.Second { // ann becomes 3m
		t.Errorf("due in %v", due)
	}
	if due := psDue(x, members[:1]); due != 0 { // the lead is not listed
		t.Errorf("of a lead alone due in %v", due)
	}
}

// TestEventLine checks that an event without a change prints none.
func TestEventLine(t *testing.T) {
	t.Parallel()
	a := &app{out: &output{}}
	if got := a.eventLine(ledger.Event{Who: "ann", What: team.EventTaskReleased, ID: "1", Before: "pending", After: "pending"}); strings.Contains(got, "->") {
		t.Errorf("%q", got)
	}
	if got := a.eventLine(ledger.Event{Who: "ann", What: team.EventTaskReleased, ID: "1", Before: "claimed", After: "pending"}); !strings.HasSuffix(got, "claimed -> pending") {
		t.Errorf("%q", got)
	}
}

package policy

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func TestBackoffGrowsToItsCap(t *testing.T) {
	t.Parallel()
	p := Policy{Jitter: -1}.WithDefaults()
	var got []time.Duration
	for n := 1; n <= 8; n++ {
		got = append(got, p.Backoff(n))
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	p = Policy{}.WithDefaults()
	for range 100 {
		if d := p.Backoff(3); d < 4*time.Second || d > 6*time.Second {
			t.Fatalf("with jitter: %v", d)
		}
	}
	if v := p.Judge(team.RestartOnFailure, backends.Exit{Known: true, Code: 1}, 6*time.Minute, 7); v.Failures != 1 {
		t.Errorf("a healthy period forgets failures: %+v", v)
	}
}

// An agent that exits with status 0 because its terminal or the machine goes down has not completed
// its work.
func TestImposedEndIsNoCompletion(t *testing.T) {
	t.Parallel()
	p := Policy{}.WithDefaults()
	for _, why := range []string{backends.ReasonTerminalGone, backends.ReasonServerGone, backends.ReasonPaneKilled, backends.ReasonShimTerminated, backends.ReasonShimTerminated + "; more"} {
		e := backends.Exit{Known: true, Reason: why}
		if v := p.Judge(team.RestartOnFailure, e, time.Minute, 0); v.Next != team.Backoff {
			t.Errorf("%s: %+v", why, v)
		}
		if v := p.Judge(team.RestartNever, e, time.Minute, 0); v.Next != team.Failed {
			t.Errorf("%s, never started again: %+v", why, v)
		}
	}
	if v := p.Judge(team.RestartOnFailure, backends.Exit{Known: true, Reason: "2 processes left"}, time.Minute, 0); v.Next != team.Completed {
		t.Errorf("by itself: %+v", v)
	}
}

// The rest of a back-off is measured by the clock since boot, which cannot be set, and is at most
// one longest pause.
func TestPauseLeft(t *testing.T) {
	t.Parallel()
	p := Policy{FirstBackoff: time.Hour, MaxBackoff: 60 * time.Hour, Jitter: 0.5}.WithDefaults()
	boot, by := "one", time.Duration(0)
	c := Clock{Wall: func() time.Time { return time.Now().Add(by) }, SinceBoot: func() (string, time.Duration, error) {
		up, err := proc.SinceBoot()
		return boot, up, err
	}}
	b := team.Bundle(t.TempDir())
	m := ledger.Member{Name: "a", Generation: "g", Failures: 3, NextStart: time.Now().Add(3 * time.Hour).UnixMilli()}
	about := func(what string, want time.Duration) {
		t.Helper()
		if left := p.PauseLeft(c, b, m); left < want-time.Hour/2 || left > want+time.Hour/2 {
			t.Errorf("%s: %s left; want about %s", what, left, want)
		}
	}
	about("no file: by the wall", 3*time.Hour)
	if err := c.WritePause(b, "g", 4*time.Hour); err != nil {
		t.Fatal(err)
	}
	about("by the boot's clock", 4*time.Hour)
	for _, by = range []time.Duration{4800 * time.Hour, -4800 * time.Hour} {

		about("the wall moved", 4*time.Hour)
	}
	boot = "two"
	about("another boot, the wall moved back", 6*time.Hour) // the longest pause after three failures
	by = 4800 * time.Hour
	about("another boot, much later", 0)
	boot, m.Generation = "one", "h"
	about("of another generation", 0)
	if got := p.longest(100); got != 90*time.Hour {
		t.Errorf("the longest pause: %s", got)
	}
}

// A member that was never started has no bundle: only the ledger has its back-off.
func TestPauseWithoutBundle(t *testing.T) {
	t.Parallel()
	c := Clock{}.WithDefaults()
	if err := c.WritePause(team.Bundle(filepath.Join(t.TempDir(), "gone")), "g", time.Hour); err != nil {
		t.Error(err)
	}
}

package delivery

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// A member whose hooks report goes on to have the state of the last one after the clock was set back.
func TestFault14ClockSetBack(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	is := func(what string, want team.Activity) {
		t.Helper()
		if got := r.List[0].Activity; got != want {
			t.Errorf("%s it is %s; want %s", what, got, want)
		}
	}
	r.saw(team.Observation{Activity: team.Working})
	r.d.Jumped(-time.Hour)
	r.saw(team.Observation{Activity: team.Idle, At: time.Now().Add(-30 * time.Minute)})
	is("after the clock was set back", team.Idle)
	// Of an earlier supervisor, or stamped just before the clock was set back.
	r.saw(team.Observation{Activity: team.Working, At: time.Now().Add(time.Hour)})
	r.saw(team.Observation{Activity: team.Idle})
	is("after a hook of the future", team.Idle)
}

// The end of a limit is waited for again by the wall clock after the machine has slept.
func TestLimitEndsAfterSleep(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{})
	timer := limitTimer(r.session)
	r.saw(team.Observation{Activity: team.Limited, Until: time.Now().Add(time.Hour)})
	r.Periods[timer] = 0
	r.d.Jumped(0)
	if d := r.Periods[timer]; d < 59*time.Minute || d > time.Hour+time.Second {
		t.Errorf("it is waited for %s", d)
	}
}

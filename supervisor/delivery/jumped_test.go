package delivery

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
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

// A message is asked about again at its time after a jump of the clock, not at once, and not when the
// clock has caught up.
func TestAskedAboutAfterJump(t *testing.T) {
	t.Parallel()
	r := open(t, &channel{settles: true})
	c, p := r.d.ways[r.session].conn, r.d.policy.Evidence
	now := time.Now()
	for _, x := range []struct {
		what  string
		at    time.Duration // of the delivery, ago
		a     ages
		asked askedAbout
		want  time.Duration
	}{
		{"no jump", 10 * time.Second, ages{}, askedAbout{}, p - 10*time.Second},
		{"a sleep", 10 * time.Hour, ages{jumped: now}, askedAbout{}, p},
		{"a sleep after a question", 10 * time.Hour, ages{jumped: now}, askedAbout{at: now.Add(-10 * time.Second), times: 1}, 2*p - 10*time.Second},
		{"set back", -2 * time.Hour, ages{jumped: now.Add(-10 * time.Second)}, askedAbout{}, p - 10*time.Second},
		{"set back before the start", -2 * time.Hour, ages{began: now.Add(-10 * time.Second)}, askedAbout{}, p - 10*time.Second},
		{"delivered since", 10 * time.Second, ages{jumped: now.Add(-time.Hour)}, askedAbout{}, p - 10*time.Second},
	} {
		c.askedAbout = map[string]askedAbout{"m": x.asked}
		got := r.d.askAboutIn(c, ledger.Delivery{MessageID: "m", At: now.Add(-x.at).UnixMilli()}, x.a, now)
		if (got - x.want).Abs() > time.Second {
			t.Errorf("%s: asked in %s, want %s", x.what, got, x.want)
		}
	}
	r.d.Jumped(0)
	if r.d.ages.jumped.Before(now) {
		t.Error("the jump is not noted")
	}
}

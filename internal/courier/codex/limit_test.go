package codex

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// Codex reports a limit as the error of a turn, and the limit's end, exact to the second, in its
// account data. The thread is at rest because of the limit until the next turn. The first turn of
// a thread may be over before the channel can subscribe to it.
func TestAppServerLimit(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, false)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	for _, id := range []string{"first", "second"} {
		from := r.Mark()
		before := time.Now()
		r.Deliver(t, false, id, "@@fail 429 You've hit your usage limit, until within 2h")
		o := r.Wait(t, "the limit of the "+id, from, couriertest.Is(team.Limited))
		if left := o.Until.Sub(before); left < 2*time.Hour-time.Minute || left > 2*time.Hour+10*time.Minute || !strings.Contains(o.Evidence[0], "usage limit") {
			t.Errorf("limited for %s by %q", left, o.Evidence)
		}
		if o.Began().Before(before.Add(-2 * time.Second)) {
			t.Errorf("since %s, before %s", o.Began(), before)
		}
		// The next supervisor learns it from the thread.
		r.Ch.Close()
		from = r.Mark()
		r.open(t)
		again := r.Wait(t, "the limit again", from, couriertest.Is(team.Limited))
		if d := again.Began().Sub(o.Began()); d < -time.Minute || d > time.Minute {
			t.Errorf("since %s, then since %s", o.Began(), again.Began())
		}
		from = r.Mark()
		r.Deliver(t, false, id+" and on", "go on")
		r.Wait(t, "working", from, couriertest.Is(team.Working))
		r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	}
	from := r.Mark()
	r.Deliver(t, false, "m3", "@@fail 500 something else")
	r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	all := r.All()
	for _, o := range all[from:] {
		if o.Activity == team.Limited {
			t.Errorf("another error is a limit: %+v", o)
		}
	}
}

package delivery

import (
	"time"

	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Jumped moves the times of what was seen if the clock was set, and arms the ends of limits again.
func (d *Delivery) Jumped(set time.Duration) {
	now := time.Now()
	d.ages.jumped = now
	for session, w := range d.ways {
		if set != 0 {
			w.seen.Shift(set, now)
			w.interrupted = state.Shifted(w.interrupted, set, now)
		}
		if m := d.of(session); m != nil && m.row.Channel && m.row.Observed == team.Running {
			d.showState(m)
		}
	}
}

// ages has what is needed to tell the age of what the ledger has dated by the wall clock.
type ages struct {
	began  time.Time // of this supervisor
	jumped time.Time // when the clock was last seen to have jumped; zero: never
}

// since returns the time from which on the age of something counts: the time before a jump is none,
// nor is the future, in which only a clock that was set back could have dated it.
func (a ages) since(at, now time.Time) time.Time {
	if at.After(now) && a.jumped.IsZero() {
		return a.began
	}
	if at.After(now) || at.Before(a.jumped) {
		return a.jumped
	}
	return at
}

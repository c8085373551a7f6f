package delivery

import (
	"time"

	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Jumped moves the times of what was seen if the clock was set, and arms the ends of limits again.
func (d *Delivery) Jumped(set time.Duration) {
	now := time.Now()
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

package state

import (
	"time"

	"github.com/teamctl/teamctl/team"
)

// Shift is called when the wall clock was set forward by a duration, or back by a negative one. What was
// seen before keeps its distance from what is seen after: otherwise each new observation would be
// older than the last one, which would count until the clock has caught up. The times of a limit
// (Ended, Since and Until) stay as they were recorded.
func (e *Engine) Shift(by time.Duration, now time.Time) {
	to := func(at time.Time) time.Time { return Shifted(at, by, now) }
	of := func(o team.Observation) team.Observation {
		if o.Activity == team.Limited {
			o.Since = o.Began()
		}
		o.At = to(o.At)
		return o
	}
	for tier, o := range e.last {
		e.last[tier] = of(o)
	}
	for i, o := range e.recent {
		e.recent[i] = of(o)
	}
	e.failed, e.dialog = of(e.failed), of(e.dialog)
	e.began, e.answered = to(e.began), to(e.answered)
}

// Shifted returns a time from before the wall clock was set forward by a duration as the clock has
// it now. No such time is later than now; none (the zero time) stays none.
func Shifted(at time.Time, by time.Duration, now time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	if at = at.Round(0).Add(by); at.After(now) { // without a monotonic reading, which was not set
		return now
	}
	return at
}

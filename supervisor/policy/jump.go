package policy

import "time"

// leastJump is the least difference between two clocks that counts as a jump. Smaller ones add up
// until they are one.
const leastJump = time.Second

// Moment is one moment by all clocks.
type Moment struct {
	wall time.Time
	ran  time.Duration
	up   time.Duration // since boot; negative: unknown
}

// Now returns the present moment.
func (c Clock) Now() Moment {
	m := c.now()
	m.up = -1
	if _, up, err := c.SinceBoot(); err == nil {
		m.up = up
	}
	return m
}

// now leaves out the time since boot, which is a system call.
func (c Clock) now() (m Moment) {
	for range 3 { // a process that is stopped between the readings has two moments in one
		m.ran = c.Ran()
		m.wall = c.Wall().Round(0) // without a monotonic reading
		if c.Ran()-m.ran < leastJump/10 {
			break
		}
	}
	return m
}

// Jumped reports whether the wall clock and the timers disagree since a moment, because the machine
// has slept or the clock was set. set is how far it was set forward; without the time since boot a
// sleep counts as that. next is the moment to compare with the next time.
func (c Clock) Jumped(since Moment) (jumped bool, set time.Duration, next Moment) {
	m := c.now()
	ran := m.ran - since.ran
	if (m.wall.Sub(since.wall) - ran).Abs() < leastJump {
		return false, 0, since
	}
	m = c.Now()
	ran, set = m.ran-since.ran, m.wall.Sub(since.wall)
	if since.up >= 0 && m.up >= 0 {
		ran = max(ran, m.up-since.up)
	}
	if set -= ran; set.Abs() < leastJump/10 { // no two clocks are read at once
		set = 0
	}
	return true, set, m
}

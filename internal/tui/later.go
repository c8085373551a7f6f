package tui

import (
	"fmt"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// putOff is how long a need stays put off unless it changes.
const putOff = 15 * time.Minute

// later is a need that the person has put off: on this screen only, nothing is written down.
type later struct {
	need  view.Need // as it was then
	until time.Time
}

func (m *model) laterID(n view.Need) string { return m.name + " " + needID(n) }

// isLater reports whether a need is put off: until its time, or until it is another one.
func (m *model) isLater(n view.Need) bool {
	l, ok := m.later[m.laterID(n)]
	same := l.need.Since.Equal(n.Since)
	n.Since = l.need.Since
	return ok && m.now.Before(l.until) && same && l.need == n
}

// needs returns the needs with those that are put off last, and how many are not.
func (m *model) needs() (all []view.Need, now int) {
	all = slices.Clone(m.snap.Needs)
	slices.SortStableFunc(all, func(a, b view.Need) int {
		switch x, y := m.isLater(a), m.isLater(b); {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	})
	for _, n := range all {
		if !m.isLater(n) {
			now++
		}
	}
	return all, now
}

// putOffNeed puts the selected need off, or takes it up again, and goes to the next one.
func (m *model) putOffNeed() {
	it, ok := m.row()
	if !ok || it.gone || it.on.Need == nil {
		m.say("nothing here can be put off", true)
		return
	}
	n := *it.on.Need
	if m.isLater(n) {
		delete(m.later, m.laterID(n))
		m.say(needWord(n)+" is not put off any more", false)
		return
	}
	m.nextNeed(1)
	if m.later == nil {
		m.later = map[string]later{}
	}
	m.later[m.laterID(n)] = later{n, m.now.Add(putOff)}
	m.say(fmt.Sprintf("%s is put off until %s, or until it changes", needWord(n), m.now.Add(putOff).Local().Format("15:04")), false)
}

// laterEnds returns the time until a need is shown as ever, 0 for never, and forgets what is over.
func (m *model) laterEnds() (d time.Duration) {
	for id, l := range m.later {
		left := l.until.Sub(m.now)
		if left <= 0 {
			delete(m.later, id)
			continue
		}
		if d == 0 || left < d {
			d = left
		}
	}
	return d
}

// needTitle heads the list of needs.
func needTitle(now, all int) string {
	title := fmt.Sprintf("! %d NEED YOU", now)
	if now == 0 {
		title = "NOTHING NEEDS YOU"
	}
	if n := all - now; n > 0 {
		title += fmt.Sprintf(", %d put off", n)
	}
	return title
}

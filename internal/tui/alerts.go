package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

const (
	alertCompany = time.Second      // how long an alert waits for others that come with it
	alertPause   = 10 * time.Second // least time between two alerts
	alertCalm    = 5 * time.Second  // how long nothing has to begin until all is done
	alertNames   = 4                // needs that an alert names
)

// alerts are what the terminal is told while it has no focus: what begins to need the person, each
// once, and that all is done.
type alerts struct {
	team  string
	there map[string]bool // needs, by needID; nil before the first snapshot
	fresh []view.Need     // begun, and not told yet
	due   time.Time       // of telling them
	next  time.Time       // no alert before

	did  bool      // somebody has worked since all was done
	rest time.Time // since when nobody works; zero while somebody does
}

// look takes in a snapshot, and returns what is to be told now.
func (a *alerts) look(m *model, focused bool) (title, text string) {
	if !m.have || a.team != m.name {
		*a = alerts{team: m.name}
		if !m.have {
			return "", ""
		}
	}
	list, now := m.needs()
	list = list[:now]
	there := make(map[string]bool, len(list))
	for _, n := range list {
		there[needID(n)] = true
		if a.there != nil && !a.there[needID(n)] {
			a.fresh = append(a.fresh, n)
		}
	}
	a.fresh = slices.DeleteFunc(a.fresh, func(n view.Need) bool { return !there[needID(n)] })
	a.there = there
	switch {
	case atWork(m.snap):
		a.did, a.rest = true, time.Time{}
	case a.did && a.rest.IsZero():
		a.rest = m.now
	}
	if focused { // it is seen
		a.fresh, a.due = nil, time.Time{}
		a.did = a.did && a.rest.IsZero()
		return "", ""
	}
	title = "teamctl " + view.Clean(m.name)
	switch {
	case len(a.fresh) == 0:
		a.due = time.Time{}
	case a.due.IsZero():
		a.due = m.now.Add(alertCompany)
		if a.due.Before(a.next) {
			a.due = a.next
		}
	case !m.now.Before(a.due):
		text = inAlert(a.fresh)
		a.fresh, a.due, a.next = nil, time.Time{}, m.now.Add(alertPause)
		return title, text
	}
	if a.did && !a.rest.IsZero() && !m.now.Before(a.rest.Add(alertCalm)) {
		a.did, a.rest = false, time.Time{}
		c := m.snap.Count()
		text = "all is done"
		if c.Failed > 0 {
			text = fmt.Sprintf("nothing is left to do, %d failed", c.Failed)
		}
		if c.Total > 0 {
			text += fmt.Sprintf(": %d of %d tasks are completed", c.Done, c.Total)
		}
		return title, text
	}
	return "", ""
}

// wait returns the time until something may have to be told, 0 for never.
func (a *alerts) wait(now time.Time) (d time.Duration) {
	if !a.due.IsZero() {
		d = max(a.due.Sub(now), time.Millisecond)
	}
	if a.did && !a.rest.IsZero() {
		if calm := max(a.rest.Add(alertCalm).Sub(now), time.Millisecond); d == 0 || calm < d {
			d = calm
		}
	}
	return d
}

// atWork reports whether a member works, waits or starts, or a task is worked on or can be.
func atWork(s view.Snapshot) bool {
	for _, x := range s.Members {
		switch {
		case x.Lead:
		case x.State == team.Starting, x.State == team.Backoff,
			x.State == team.Running && x.Activity != team.Idle && x.Activity != team.ActivityUnknown:
			return true
		}
	}
	c := s.Count()
	return c.Active+c.Ready+c.Waiting > 0
}

// inAlert is the text of an alert: a need, or how many and the first of them.
func inAlert(list []view.Need) string {
	if len(list) == 1 {
		n := list[0]
		if n.Kind == view.NeedHands { // it names the tasks and the reason
			return view.Clean(n.Text)
		}
		return strings.TrimSpace(needWho(n)+": "+needWord(n)) + ", " + view.Clean(n.Text)
	}
	var names []string
	for _, n := range list[:min(len(list), alertNames)] {
		names = append(names, strings.TrimSpace(needWho(n)+" "+needWord(n)))
	}
	text := fmt.Sprintf("%d need you: %s", len(list), view.Clean(strings.Join(names, ", ")))
	if n := len(list) - alertNames; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

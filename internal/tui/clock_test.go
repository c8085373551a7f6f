package tui

import (
	"regexp"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// TestClockMoved checks the frames that are drawn after the wall clock was set back by two hours, and ahead by a
// day: no age is negative, a need is put off until the time that was said, and the screen does not wake each
// second for ages that do not change.
func TestClockMoved(t *testing.T) {
	t.Parallel()
	negative := regexp.MustCompile(`[ (]-[0-9]+[smhd]\b`)
	for _, c := range []struct {
		moved time.Duration
		age   string        // of the first need, five minutes old before
		off   bool          // a need is put off still
		wake  time.Duration // it is drawn again no sooner
	}{
		{-2 * time.Hour, "0s", true, time.Minute},
		{24 * time.Hour, "1d", false, time.Hour},
	} {
		for _, at := range []place{inTeam, inTasks, inNeeds, inMail, inChanges, inUsage, inTime, inTeams, inLog} {
			m := shownOf(crowd(8), 120, 36)
			r, _, _ := inHand(t, m, &fuzzed{})
			r.gaze = newGaze()
			m.at = at
			m.snap.Needs[1].Later, m.snap.Needs[1].Until = true, epoch.Add(15*time.Minute)
			m.mail = []view.Message{{ID: "1", Root: "1", From: "a", Text: "x", At: epoch}}
			m.logged.task = "2"
			m.setLog(failedLog(), nil)
			m.past = pastOf(m.snap)
			m.refresh()
			m.draw()
			m.now = m.now.Add(c.moved)
			m.refresh()
			drawn := text(m.draw())
			if s := negative.FindString(drawn); s != "" {
				t.Errorf("%v, %s: the age %s\n%s", c.moved, at, s, drawn)
			}
			if at == inNeeds {
				if !regexp.MustCompile(`worker-1 .* ` + c.age + ` `).MatchString(drawn + " ") {
					t.Errorf("%v: no need of %s\n%s", c.moved, c.age, drawn)
				}
				if _, now := m.needs(); now < len(m.snap.Needs) != c.off {
					t.Errorf("%v: put off is %v", c.moved, !c.off)
				}
			}
			if at == inTeam || at == inNeeds {
				if d := r.due(); d < c.wake {
					t.Errorf("%v, %s: drawn again in %v", c.moved, at, d)
				}
			}
		}
	}
}

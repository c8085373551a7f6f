package courier

import (
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// limitFile is what stands of a limit in the bundle.
const limitFile = "limit.json"

// ShownLimit is a usage limit that the screen shows. Its words name an hour and stay
// there when that is over: what they mean is fixed when they are seen first, also for
// the next supervisor. Otherwise "resets 3pm" would begin another day at 3pm.
type ShownLimit struct {
	Generation string    `json:"generation"`
	Text       string    `json:"text"`
	Count      int       `json:"count"` // how often it stands on the screen: once more is news
	Since      time.Time `json:"since"`
	Until      time.Time `json:"until,omitzero"`
}

// limits is what a looker keeps of the limits that it sees.
type limits struct {
	mu   sync.Mutex
	last ShownLimit
	told time.Time // Since of the one that was reported
}

func (s *limits) load(f Facts) {
	var last ShownLimit
	if err := ReadJSON(f.Bundle, limitFile, &last); err == nil && last.Generation == f.Generation {
		s.last = last
	}
}

// at is what a screen shows at a time, and what there is beside the words of a limit.
func (l *looker) at(screen string, now time.Time) (seen, past adapter.Seen) {
	seen = l.judge(screen, l.rules.Look(screen, l.f.version(), now), now)
	if past = seen; seen.Activity == team.Limited {
		past = l.rules.LookPast(screen, l.f.version(), now)
	}
	return seen, past
}

// judge dates a limit that was seen; one that is over is looked past.
func (l *looker) judge(screen string, seen adapter.Seen, now time.Time) adapter.Seen {
	s := &l.limits
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(seen.Lines, "\n")
	switch n := s.count(screen); {
	case seen.Activity != team.Limited && seen.Activity != team.Working: // nothing follows from what is not drawn
		return seen
	case seen.Activity == team.Limited && (s.last.Text != text || n > s.last.Count):
		s.last = ShownLimit{Generation: l.f.Generation, Text: text, Since: now, Until: seen.Until}
		s.last.Count = s.count(screen)
		l.keep()
	case n < s.last.Count: // scrolled away
		s.last.Count = n
		l.keep()
	}
	if seen.Activity != team.Limited {
		return seen
	}
	seen.Since, seen.Until = s.last.Since, s.last.Until
	if !seen.Until.IsZero() && !now.Before(seen.Until) {
		return l.rules.LookPast(screen, l.f.version(), now)
	}
	return seen
}

// count is how often the last limit stands on the screen; the lock is held.
func (s *limits) count(screen string) int {
	line, _, _ := strings.Cut(s.last.Text, "\n")
	if line == "" {
		return 0
	}
	return strings.Count(screen, line)
}

// keep writes the last limit for the next supervisor; the lock is held.
func (l *looker) keep() {
	if err := WriteJSON(l.f.Bundle, limitFile, l.limits.last); err != nil {
		l.f.Log.Warn("note a usage limit", "member", l.f.Name, "err", err)
	}
}

// tell reports whether a limit is news to the supervisor, and takes it as told.
func (s *limits) tell(seen adapter.Seen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told.Equal(seen.Since) {
		return false
	}
	s.told = seen.Since
	return true
}

// observation is what a screen says.
func observation(seen adapter.Seen) team.Observation {
	return team.Observation{
		Tier: team.TierScreen, Activity: seen.Activity, For: seen.For, Until: seen.Until, Since: seen.Since, Ready: seen.Ready,
		At: time.Now(), Source: "rule " + seen.Rule, Evidence: seen.Lines,
	}
}

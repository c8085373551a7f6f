package courier

import (
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// limitFile is the bundle's record of a limit.
const limitFile = "limit.json"

// ShownLimit is a usage limit that the screen shows. Its text names a time of day and stays on the
// screen after that time, and a program that resumes a conversation shows it again. Its meaning is
// therefore fixed when it is first seen, also for the next supervisor and the next process of the
// conversation. Otherwise "resets 3pm" would begin another day at 3pm.
type ShownLimit struct {
	Generation   string    `json:"generation"`
	Conversation string    `json:"conversation,omitempty"` // the CLI's id; "" where it is unknown
	Text         string    `json:"text"`
	Count        int       `json:"count"` // how often the screen shows it: an increase is a new limit
	Since        time.Time `json:"since"`
	Until        time.Time `json:"until,omitzero"`
}

// limits is a looker's record of the limits that it sees.
type limits struct {
	mu   sync.Mutex
	last ShownLimit
	told time.Time // Since of the reported limit
}

func (s *limits) load(f Facts) {
	var last ShownLimit
	if err := ReadJSON(f.Bundle, limitFile, &last); err != nil {
		return
	}
	resumed := f.Link.Resumed && last.Conversation != "" && last.Conversation == f.Link.Conversation
	if last.Generation == f.Generation || resumed {
		s.last = last
	}
}

// talk returns the id of the current conversation; "" if it is unknown.
func (f Facts) talk() string {
	if c, err := ReadConversation(f.Bundle, f.Session); err == nil && c.Generation == f.Generation {
		return c.ID
	}
	return f.Link.Conversation
}

// at returns what a screen shows at a time, and what it shows apart from the text of a limit.
func (l *looker) at(screen string, now time.Time) (seen, past adapter.Seen) {
	seen = l.judge(screen, l.rules.Look(screen, l.f.Version(), now), now)
	if past = seen; seen.Activity == team.Limited {
		past = l.rules.LookPast(screen, l.f.Version(), now)
	}
	return seen, past
}

// judge dates a limit that was seen, and looks past one that is over.
func (l *looker) judge(screen string, seen adapter.Seen, now time.Time) adapter.Seen {
	s := &l.limits
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(seen.Lines, "\n")
	switch n := s.count(screen); {
	case seen.Activity != team.Limited && seen.Activity != team.Working: // a screen that is not drawn fully shows nothing
		return seen
	case seen.Activity == team.Limited && (s.last.Text != text || n > s.last.Count):
		s.last = ShownLimit{Generation: l.f.Generation, Conversation: l.f.talk(), Text: text, Since: now, Until: seen.Until}
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
		return l.rules.LookPast(screen, l.f.Version(), now)
	}
	return seen
}

// count returns how often the screen shows the last limit; mu is held.
func (s *limits) count(screen string) int {
	line, _, _ := strings.Cut(s.last.Text, "\n")
	if line == "" {
		return 0
	}
	return strings.Count(screen, line)
}

// keep writes the last limit for the next supervisor; mu is held.
func (l *looker) keep() {
	if err := WriteJSON(l.f.Bundle, limitFile, l.limits.last); err != nil {
		l.f.Log.Warn("note a usage limit", "member", l.f.Name, "err", err)
	}
}

// tell reports whether a limit is new to the supervisor, and marks it as reported.
func (s *limits) tell(seen adapter.Seen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told.Equal(seen.Since) {
		return false
	}
	s.told = seen.Since
	return true
}

// observation converts what a screen shows.
func observation(seen adapter.Seen) team.Observation {
	return team.Observation{
		Tier: team.TierScreen, Activity: seen.Activity, For: seen.For, Until: seen.Until, Since: seen.Since, Ready: seen.Ready,
		At: time.Now(), Source: "rule " + seen.Rule, Evidence: seen.Lines,
	}
}

package opencode

import (
	"time"

	"github.com/teamctl/teamctl/internal/courier"
)

// retryFile is the bundle's record of a wait for the end of a limit.
const retryFile = "retry.json"

// longRetry is the wait from which on a retry counts as a limit that a person may want to know
// about.
const longRetry = time.Minute

// began returns when a retry due at next was first reported. The next supervisor must not take it
// for another limit after a person has ended this one.
func (s *server) began(next time.Time) time.Time {
	var last courier.ShownLimit
	if err := courier.ReadJSON(s.f.Bundle, retryFile, &last); err == nil && last.Generation == s.f.Generation && last.Until.Equal(next) {
		return last.Since
	}
	last = courier.ShownLimit{Generation: s.f.Generation, Since: time.Now(), Until: next}
	if err := courier.WriteJSON(s.f.Bundle, retryFile, last); err != nil {
		s.f.Log.Warn("note a usage limit", "member", s.f.Name, "err", err)
	}
	return last.Since
}

// Retries reports whether the session is in a turn that continues by itself at the far-off end of
// a limit: a message sent before that waits as long.
func (s *server) Retries() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.next) > longRetry
}

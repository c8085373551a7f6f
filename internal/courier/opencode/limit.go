package opencode

import (
	"time"

	"github.com/teamctl/teamctl/internal/courier"
)

// retryFile is what stands in the bundle of a wait for the end of a limit.
const retryFile = "retry.json"

// longRetry tells a limit, which a person may want to know of, from a hiccup.
const longRetry = time.Minute

// began is when a retry that comes at next was told first: whoever takes over later,
// when a person has ended that limit, must not take it for another.
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

// Retries reports whether the session sits in a turn that goes on by itself at the end
// of a limit, which is far off: what it is given before waits as long.
func (s *server) Retries() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.next) > longRetry
}

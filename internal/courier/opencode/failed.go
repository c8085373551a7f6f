package opencode

import (
	"cmp"
	"time"

	"github.com/teamctl/teamctl/team"
)

// sessionError is what has ended a turn of opencode.
type sessionError struct {
	Name string
	Data struct{ Message string }
}

// aborted is the error of a turn that somebody has ended.
const aborted = "MessageAbortedError"

// failed reports how a turn has ended otherwise than by itself; it is called before the
// session is told to be at rest. Zero for at is now.
func (s *server) failed(e sessionError, at time.Time, source string) {
	if at.IsZero() {
		at = time.Now()
	}
	if e.Name == aborted { // by a person too, at its own screen
		s.see(team.Observation{Source: source, At: at, Interrupted: true})
		return
	}
	words := cmp.Or(e.Data.Message, e.Name, "an error that opencode does not name")
	s.see(team.Observation{Source: source, At: at, Failed: words})
}

// endedBy reports the error of the last message of the session, which nobody has told
// to this channel. What somebody has aborted is over.
func (s *server) endedBy(last messageInfo) {
	if e := last.Error; e != nil && e.Name != aborted {
		s.failed(*e, time.UnixMilli(cmp.Or(last.Time.Completed, last.Time.Created)), "message "+last.ID)
	}
}

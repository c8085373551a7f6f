package opencode

import (
	"cmp"
	"time"

	"github.com/teamctl/teamctl/team"
)

// sessionError is an error that ended a turn of opencode.
type sessionError struct {
	Name string
	Data struct{ Message string }
}

// aborted is the error of an aborted turn.
const aborted = "MessageAbortedError"

// failed reports a turn that did not end by itself; it is called before the session is reported to
// be at rest. A zero at means now.
func (s *server) failed(e sessionError, at time.Time, source string) {
	if at.IsZero() {
		at = time.Now()
	}
	if e.Name == aborted { // also by a person, at the agent's own screen
		s.see(team.Observation{Source: source, At: at, Interrupted: true})
		return
	}
	words := cmp.Or(e.Data.Message, e.Name, "an error that opencode does not name")
	s.see(team.Observation{Source: source, At: at, Failed: words})
}

// endedBy reports the error of the session's last message, which this channel has not received as
// an event. An aborted turn is not reported.
func (s *server) endedBy(last messageInfo) {
	if e := last.Error; e != nil && e.Name != aborted {
		s.failed(*e, time.UnixMilli(cmp.Or(last.Time.Completed, last.Time.Created)), "message "+last.ID)
	}
}

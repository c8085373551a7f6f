package team

import (
	"strings"
)

// SessionKind is what a session of the built-in agent is for. It is the third field of
// the session's key.
type SessionKind string

// Kinds of session.
const (
	SessionLead     SessionKind = "team"     // the lead's conversation; its id is the team's key
	SessionTeammate SessionKind = "teammate" // a member's conversation
	SessionSubagent SessionKind = "subagent" // a child of another session
	SessionMain     SessionKind = "main"     // a further conversation of a person with the lead
	SessionCron     SessionKind = "cron"     // woken by time
)

// SessionKey is a session's key in parts: agent:SPEC:KIND:ID.
type SessionKey struct {
	Spec string // id of the agent spec at the session's birth
	Kind SessionKind
	ID   string // the team's key for SessionLead, else a UUID
}

// NewSessionKey makes a key with a random id; it is not for SessionLead.
func NewSessionKey(spec string, kind SessionKind) SessionKey {
	return SessionKey{Spec: orDefault(spec), Kind: kind, ID: NewUUID()}
}

// ParseSessionKey reads a key. Errors are CodeInvalid.
func ParseSessionKey(s string) (SessionKey, error) {
	f := strings.SplitN(s, ":", 4)
	if len(f) == 4 && f[0] == "agent" && f[1] != "" && f[3] != "" {
		switch k := SessionKind(f[2]); k {
		case SessionLead, SessionTeammate, SessionSubagent, SessionMain, SessionCron:
			return SessionKey{Spec: f[1], Kind: k, ID: f[3]}, nil
		}
	}
	return SessionKey{}, Errorf(CodeInvalid, "invalid session key %q", s).WithReason(ReasonBadSession).
		WithHint("a key has the form agent:SPEC:teammate:ID; teamctl session ls lists them")
}

func (k SessionKey) String() string {
	return "agent:" + k.Spec + ":" + string(k.Kind) + ":" + k.ID
}

// ChannelInternal is the channel of everything that agents tell each other. Nothing of
// it is delivered outside the team.
const ChannelInternal = "internal"

// ChannelPerson is the channel of a session that may notify the person outside the team.
const ChannelPerson = "person"

// Lane bounds how many turns run at the same time, over the whole team.
type Lane string

// Lanes. A turn of any other lane runs alone in it.
const (
	LaneMain     Lane = "main"              // the lead and chats
	LaneTeammate Lane = "teammate"          // members
	LaneSubagent Lane = "subagent"          // child sessions
	LaneAnnounce Lane = "internal_announce" // turns that results of children begin
	LaneCron     Lane = "cron"              // turns that time begins
)

var laneWidths = map[Lane]int{LaneMain: 4, LaneTeammate: 32, LaneSubagent: 8, LaneAnnounce: 4, LaneCron: 1}

// MaxTurnRounds is how many answers of its model, summaries included, a turn may have unless
// the team's setting turn-rounds says otherwise.
const MaxTurnRounds = 100

// Lanes lists the lanes that have a width of their own.
func Lanes() []Lane { return []Lane{LaneMain, LaneTeammate, LaneSubagent, LaneAnnounce, LaneCron} }

// MaxLaneWidth is the most that a team may set for a lane.
const MaxLaneWidth = 1000

// Width is how many turns of the lane run at the same time unless the team's setting
// lane.NAME says otherwise.
func (l Lane) Width() int {
	if w := laneWidths[l]; w > 0 {
		return w
	}
	return 1
}

// LaneOf is the lane of ordinary turns of a session of this kind.
func LaneOf(k SessionKind) Lane {
	switch k {
	case SessionLead, SessionMain:
		return LaneMain
	case SessionTeammate:
		return LaneTeammate
	case SessionSubagent:
		return LaneSubagent
	case SessionCron:
		return LaneCron
	}
	return Lane(k)
}

// TurnCause is why a turn was queued.
type TurnCause string

// Causes.
const (
	CauseMessage  TurnCause = "message"  // mail, or a line of a person
	CauseBacklog  TurnCause = "backlog"  // what was put off while another turn ran
	CauseAnnounce TurnCause = "announce" // results of children
	CauseWake     TurnCause = "wake"     // a time that the session asked to be woken at
)

// TurnState is the state of one queued turn of a session.
type TurnState string

// Turn states.
const (
	TurnQueued    TurnState = "queued"
	TurnRunning   TurnState = "running"
	TurnDone      TurnState = "done"
	TurnFailed    TurnState = "failed"
	TurnCancelled TurnState = "cancelled"
	TurnSteered   TurnState = "steered"
)

var turnEdges = map[TurnState][]TurnState{
	TurnQueued:  {TurnRunning, TurnCancelled},
	TurnRunning: {TurnDone, TurnFailed, TurnCancelled, TurnSteered, TurnQueued},
}

// TurnStates lists every state of a turn, in order of life.
func TurnStates() []TurnState {
	return []TurnState{TurnQueued, TurnRunning, TurnDone, TurnFailed, TurnCancelled, TurnSteered}
}

// Next are the states that the table allows after s.
func (s TurnState) Next() []TurnState { return append([]TurnState(nil), turnEdges[s]...) }

// CanMove reports whether a turn may go from s to to. From running back to queued is
// the way of a turn whose process has ended, and of one that waits for its budget.
func (s TurnState) CanMove(to TurnState) bool {
	for _, t := range turnEdges[s] {
		if t == to {
			return true
		}
	}
	return false
}

// Ended reports whether the turn does nothing more.
func (s TurnState) Ended() bool { return len(turnEdges[s]) == 0 }

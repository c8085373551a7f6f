package team

import "slices"

// StopState is how far the stop of a member has come.
type StopState string

// States of a stop.
const (
	StopIsOrdered  StopState = "ordered"
	StopIsAsked    StopState = "asked"
	StopIsDraining StopState = "draining"
	StopIsEnding   StopState = "ending"
	StopIsEnded    StopState = "ended"
	StopIsRejected StopState = "rejected"
	StopIsFailed   StopState = "failed"
)

// stopEdges is the one transition table of a stop (docs/states.md). Nothing follows StopIsEnding but
// its end: an answer that comes then is too late.
var stopEdges = map[StopState][]StopState{
	StopIsOrdered:  {StopIsAsked, StopIsEnding, StopIsEnded, StopIsFailed},
	StopIsAsked:    {StopIsDraining, StopIsEnding, StopIsEnded, StopIsRejected},
	StopIsDraining: {StopIsEnding, StopIsEnded, StopIsRejected},
	StopIsEnding:   {StopIsEnded, StopIsFailed},
}

// StopStates lists every state of a stop, in order of life.
func StopStates() []StopState {
	return []StopState{StopIsOrdered, StopIsAsked, StopIsDraining, StopIsEnding, StopIsEnded, StopIsRejected, StopIsFailed}
}

// Next are the states that the table allows after s.
func (s StopState) Next() []StopState { return slices.Clone(stopEdges[s]) }

// Move checks the edge and returns to; an illegal one is an error naming both states.
func (s StopState) Move(to StopState) (StopState, error) {
	if !slices.Contains(stopEdges[s], to) {
		return s, Errorf(CodeInternal, "a stop cannot go from %s to %s", s, to)
	}
	return to, nil
}

// StopStateOf returns the state in which a stop with this outcome is over; one that was only
// requested goes on.
func StopStateOf(outcome string) StopState {
	switch outcome {
	case StopRejected:
		return StopIsRejected
	case StopFailed:
		return StopIsFailed
	case StopRequested:
		return StopIsAsked
	default: // no process is left
		return StopIsEnded
	}
}

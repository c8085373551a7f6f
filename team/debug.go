package team

import "time"

// Trace is one message that the loop took.
type Trace struct {
	At   time.Time     `json:"at"`
	What string        `json:"what"`
	Took time.Duration `json:"took"`
}

// Debug is the loop's state for a person who looks for a fault.
type Debug struct {
	Members []DebugMember `json:"members"`
	Timers  []string      `json:"timers"` // what is armed: nothing but lease and idle at rest
	LastSeq int64         `json:"lastEventSeq"`
	Traces  []Trace       `json:"recent"` // oldest first
}

// DebugMember is one member with what the loop keeps beside its row.
type DebugMember struct {
	Name       string `json:"name"`
	Generation string `json:"generation"`
	Desired    string `json:"desired"`
	Observed   string `json:"observed"`
	Step       string `json:"step,omitempty"`
	Stopping   string `json:"stopping,omitempty"`
	Attached   bool   `json:"attached"`
	Waiters    int    `json:"waiters"`
}

// Verdict is what the agent does, and who says so.
type Verdict struct {
	Activity Activity  `json:"activity"`
	For      WaitFor   `json:"for,omitempty"`
	Until    time.Time `json:"until,omitzero"`
	Since    time.Time `json:"since,omitzero"` // of a limit
	Ready    bool      `json:"ready"`
	Tier     string    `json:"tier,omitempty"`
	Source   string    `json:"source,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Evidence []string  `json:"evidence,omitempty"`
	Failed   string    `json:"failed,omitempty"`  // of one at rest: the error that ended its last turn
	NoHooks  bool      `json:"noHooks,omitempty"` // none of its hooks was heard: it does not run them
}

// Report is everything that led to a verdict.
type Report struct {
	Verdict
	// Mode is the permission mode that the member was given. ModeFrom says when its agent takes
	// it over; it is empty once it has.
	Mode     Mode   `json:"mode,omitempty"`
	ModeFrom string `json:"modeFrom,omitempty"`

	Tiers  []Observation `json:"tiers"`  // the last word of each, the most trusted first
	Recent []Observation `json:"recent"` // oldest first
}

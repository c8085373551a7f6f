package team

import "time"

// LimitReached is the error of a turn that a usage limit of the agent's provider has
// ended. It is over at Until; zero: nobody has said.
type LimitReached struct {
	Until time.Time
	Words string // as the agent said it
}

func (e *LimitReached) Error() string { return "usage limit: " + e.Words }

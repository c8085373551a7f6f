package view

import (
	"fmt"
	"time"
)

// TaskLog is one attempt at a task with what is left of its output.
type TaskLog struct {
	Task     string    `json:"task"`
	Attempt  int       `json:"attempt"`  // 0 if nobody has taken the task yet
	Attempts []int     `json:"attempts"` // all of the task, in order
	Owner    string    `json:"owner,omitempty"`
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`   // zero while it lasts
	End      string    `json:"end,omitempty"` // as of a Stint
	Events   []Event   `json:"events"`
	Parts    []LogPart `json:"parts"`
}

// LogPart is an output of an attempt, as text without control characters.
type LogPart struct {
	Title string   `json:"title"`
	Lines []string `json:"lines"`
	Cut   bool     `json:"cut,omitempty"` // earlier lines were left out
	// Missing is why there are no lines, "" if there are, or there were none.
	Missing string `json:"missing,omitempty"`
}

// Title returns what is known of the attempt in one line. now ends an attempt that lasts.
func (l TaskLog) Title(now time.Time) string {
	if l.Attempt == 0 {
		return "task " + Clean(l.Task) + ": nobody has taken it yet"
	}
	end, took := l.End, l.To.Sub(l.From)
	if l.To.IsZero() {
		end, took = "in work", now.Sub(l.From)
	}
	text := fmt.Sprintf("task %s, attempt %d", Clean(l.Task), l.Attempt)
	if n := len(l.Attempts); n > 1 {
		text += fmt.Sprintf(" of %d", l.Attempts[n-1])
	}
	if l.Owner != "" {
		text += " by " + Clean(l.Owner)
	}
	return fmt.Sprintf("%s: %s, %s from %s", text, end, Duration(took), l.From.Local().Format("15:04:05"))
}

// Other returns the attempt that is step away from this one, this one if there is none.
func (l TaskLog) Other(step int) int {
	for i, n := range l.Attempts {
		if n == l.Attempt {
			return l.Attempts[max(0, min(i+step, len(l.Attempts)-1))]
		}
	}
	return l.Attempt
}

package model

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what a caller can do about a failed request.
type Kind int

// The kinds.
const (
	Temporary Kind = iota // try again after a pause: 408, 409, 429, 5xx, 529, a refused or reset connection
	Cut                   // the stream ended before the answer did: try again
	Limited               // a limit of usage: not before Until, where that is known
	Login                 // 401, 403: not before the configuration changes
	TooLong               // the conversation does not fit: compact it
	Refused               // any other refusal: the same request fails again
)

func (k Kind) String() string {
	switch k {
	case Temporary:
		return "temporary"
	case Cut:
		return "cut"
	case Limited:
		return "limited"
	case Login:
		return "login"
	case TooLong:
		return "too_long"
	case Refused:
		return "refused"
	}
	return fmt.Sprintf("kind(%d)", int(k))
}

// Error is a failed request.
type Error struct {
	Kind     Kind
	Status   int    // of HTTP; 0 without an answer
	Provider string // as in the configuration
	Text     string // the provider's own words
	// After is the pause that the provider asks for; 0 when it says nothing.
	After time.Duration
	// Until is the end of a limit of usage; zero when unknown.
	Until time.Time
	// Err is the cause, where there is one.
	Err error
}

func (e *Error) Error() string {
	text := e.Text
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	if text == "" {
		text = e.Kind.String()
	}
	if e.Status != 0 {
		return fmt.Sprintf("%s: %s (status %d)", e.Provider, text, e.Status)
	}
	return e.Provider + ": " + text
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err; ok is false for an error of something else.
func KindOf(err error) (k Kind, ok bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind, true
	}
	return 0, false
}

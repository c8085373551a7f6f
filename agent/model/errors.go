package model

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what a caller can do about a failed request.
type Kind int

// Kinds of errors.
const (
	Temporary Kind = iota // try again after a pause: 408, 409, 429, 5xx, 529, a refused or reset connection
	Cut                   // the stream ended before the answer did: try again
	Limited               // a usage limit: not before Until, if known
	Login                 // 401, 403: not before the configuration changes
	TooLong               // the conversation is too long: compact it
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
	Status   int    // HTTP status; 0 without an answer
	Provider string // as in the configuration
	Text     string // the provider's own words
	// After is the pause requested by the provider; 0 if none.
	After time.Duration
	// Until is the end of a usage limit; zero if unknown.
	Until time.Time
	// Err is the cause, if any.
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

// KindOf returns the kind of err; ok is false for other errors.
func KindOf(err error) (k Kind, ok bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind, true
	}
	return 0, false
}

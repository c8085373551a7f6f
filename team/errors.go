package team

import (
	"context"
	"errors"
	"fmt"
)

// Code classifies an error for callers: it is the "code" of --json errors and
// decides the exit status of a command.
type Code string

// The codes and their exit statuses.
const (
	CodeInternal    Code = "internal"    // 1
	CodeInvalid     Code = "invalid"     // 2
	CodeNotFound    Code = "not_found"   // 3
	CodeConflict    Code = "conflict"    // 4
	CodeDenied      Code = "denied"      // 5
	CodeLimit       Code = "limit"       // 6
	CodeUnavailable Code = "unavailable" // 7
	CodeTimeout     Code = "timeout"     // 8
)

var exitStatus = map[Code]int{
	CodeInternal: 1, CodeInvalid: 2, CodeNotFound: 3, CodeConflict: 4,
	CodeDenied: 5, CodeLimit: 6, CodeUnavailable: 7, CodeTimeout: 8,
}

// Error is an error with a code, and where there is one a reason for programs
// (for example "already_claimed"), a hint for people (what to run) and a cause.
// It travels over the control socket as JSON.
type Error struct {
	Code   Code   `json:"code"`
	Msg    string `json:"message"`
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
	Cause  error  `json:"-"`
}

// Errorf makes a coded error; a %w operand becomes its cause, several of them all do.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if _, several := any(err).(interface{ Unwrap() []error }); several {
		cause = err
	}
	return &Error{Code: code, Msg: err.Error(), Cause: cause}
}

// Error is the message, without the hint.
func (e *Error) Error() string { return e.Msg }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// WithHint returns a copy with a hint.
func (e *Error) WithHint(hint string) *Error {
	c := *e
	c.Hint = hint
	return &c
}

// WithReason returns a copy with a reason.
func (e *Error) WithReason(reason string) *Error {
	c := *e
	c.Reason = reason
	return &c
}

// CodeOf is the code of the first coded error in err's chain; a deadline is
// CodeTimeout, everything else CodeInternal. A nil error has no code.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.DeadlineExceeded):
		return CodeTimeout
	default:
		return CodeInternal
	}
}

// ReasonOf is the reason of the first coded error in err's chain, or "".
func ReasonOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// HintOf is the hint of the first error in err's chain that has one, or "".
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Cause
	}
	return ""
}

// ExitStatus is the exit status of a command that ends with err: 0 for nil.
func ExitStatus(err error) int {
	if err == nil {
		return 0
	}
	if s, ok := exitStatus[CodeOf(err)]; ok {
		return s
	}
	return 1
}

// IsCode reports whether err carries the code.
func IsCode(err error, code Code) bool { return err != nil && CodeOf(err) == code }

package backends

import (
	"errors"

	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/team"
)

// ReasonNotPrivate is the reason of a directory or file that another user owns, or can
// change or replace.
const ReasonNotPrivate = "not_private"

// RuntimeHint is what to do about a runtime directory that cannot be used.
const RuntimeHint = "set " + team.EnvRuntime + " to a short directory of your own"

// SecureRuntime makes a team's directory of sockets (team.Layout.Runtime) where it is missing, and closes
// it to others. CodeDenied: another user owns it, or can replace it, and who reaches a
// socket in it runs commands as us.
func SecureRuntime(dir string) error {
	if err := private.Make(dir, team.IsRuntimeName); err != nil {
		return NotPrivate("runtime directory", err, RuntimeHint)
	}
	return nil
}

// NotPrivate is the error of a place that is not private (private.Refusal), or that
// cannot be looked at. hint stands where the refusal has no command that mends it.
func NotPrivate(what string, err error, hint string) error {
	r := (*private.Refusal)(nil)
	if !errors.As(err, &r) {
		return team.Errorf(team.CodeUnavailable, "check %s: %w", what, err).WithHint(hint)
	}
	if r.Mend != "" {
		hint = r.Mend
	}
	return team.Errorf(team.CodeDenied, "%s is not private: %w", what, err).WithReason(ReasonNotPrivate).WithHint(hint)
}

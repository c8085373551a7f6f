package backends

import (
	"errors"

	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/team"
)

// ReasonNotPrivate is the reason of the error for a directory or file that
// another user owns, or can change or replace.
const ReasonNotPrivate = "not_private"

// RuntimeHint is the hint for an unusable runtime directory.
const RuntimeHint = "set " + team.EnvRuntime + " to a short directory of your own"

// SecureRuntime creates a team's directory of sockets (team.Layout.Runtime) if
// necessary, and makes it private. CodeDenied means that another user owns it
// or can replace it; anyone who can connect to a socket in it can run commands
// as the owner of the team.
func SecureRuntime(dir string) error {
	if err := private.Make(dir, team.IsRuntimeName); err != nil {
		return NotPrivate("runtime directory", err, RuntimeHint)
	}
	return nil
}

// NotPrivate returns the error for a place that is not private
// (private.Refusal), or cannot be checked. hint is used unless the refusal has
// a command that fixes it.
func NotPrivate(what string, err error, hint string) error {
	r := (*private.Refusal)(nil)
	if !errors.As(err, &r) {
		return team.Errorf(team.CodeUnavailable, "check %s: %w", what, err).WithHint(hint)
	}
	if r.Mend != nil {
		hint = team.ShellLine(r.Mend)
	}
	return team.Errorf(team.CodeDenied, "%s is not private: %w", what, err).WithReason(ReasonNotPrivate).WithHint(hint)
}

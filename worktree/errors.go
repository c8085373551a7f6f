package worktree

import (
	"github.com/teamctl/teamctl/team"
)

// failed wraps an error of git whose cause is not known more precisely. An
// error that has a reason keeps its code, reason and hint.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if r := team.ReasonOf(err); r != "" {
		return team.Errorf(team.CodeOf(err), "%s: %w", what, err).WithReason(r).WithHint(team.HintOf(err))
	}
	return team.Errorf(team.CodeInternal, "%s: %w", what, err).WithReason(team.ReasonGitFailed)
}

// gitHint is a command of git in dir as a person can paste it, whatever characters
// the directory and the arguments have.
func gitHint(dir string, args ...string) string {
	return team.ShellLine(append([]string{"git", "-C", dir}, args...))
}

func notFound(reason, format string, args ...any) *team.Error {
	return team.Errorf(team.CodeNotFound, format, args...).WithReason(reason)
}

func invalid(reason, format string, args ...any) *team.Error {
	return team.Errorf(team.CodeInvalid, format, args...).WithReason(reason)
}

func conflict(reason, format string, args ...any) *team.Error {
	return team.Errorf(team.CodeConflict, format, args...).WithReason(reason)
}

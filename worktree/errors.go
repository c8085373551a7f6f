package worktree

import (
	"github.com/teamctl/teamctl/team"
)

// Reasons of this package's coded errors, with the code of each. An error has a
// hint if the user can act on it.
const (
	ReasonGitMissing     = "git_missing"           // unavailable
	ReasonGitTooOld      = "git_too_old"           // unavailable
	ReasonGitFailed      = "git_failed"            // unavailable or internal: the message contains git's own
	ReasonDiskFull       = "disk_full"             // unavailable
	ReasonReadOnly       = "repository_readonly"   // unavailable: the lock could not be made
	ReasonTimeout        = "timeout"               // timeout
	ReasonCanceled       = "canceled"              // unavailable
	ReasonPathMissing    = "path_missing"          // not found
	ReasonNotRepository  = "not_a_repository"      // invalid
	ReasonUnreadableRepo = "repository_unreadable" // invalid: there is a .git, but git rejects it
	ReasonUnbornHead     = "unborn_head"           // invalid
	ReasonUnknownRev     = "unknown_revision"      // not found
	ReasonUnknownBranch  = "unknown_branch"        // not found
	ReasonBadPath        = "invalid_path"          // invalid
	ReasonBadBranch      = "invalid_branch"        // invalid
	ReasonBadInput       = "invalid_input"         // invalid
	ReasonPathExists     = "path_exists"           // conflict
	ReasonWorktreeExists = "worktree_exists"       // conflict: a registered worktree has this path
	ReasonBranchExists   = "branch_exists"         // conflict
	ReasonCheckedOut     = "branch_checked_out"    // conflict
	ReasonRefConflict    = "ref_conflict"          // conflict: a and a/b cannot both be branches
	ReasonLockFile       = "lock_file"             // conflict: index.lock, config.lock and the like
	ReasonNotWorktree    = "not_a_worktree"        // invalid: not one of this repository
	ReasonMainWorktree   = "main_worktree"         // denied: the user's own checkout
	ReasonUnmerged       = "unmerged_files"        // conflict
	ReasonOperation      = "operation_in_progress" // conflict: merge, rebase, ...
	ReasonMergeConflict  = "merge_conflict"        // conflict
	ReasonMergeRefused   = "merge_refused"         // conflict: git did not start the merge
	ReasonDirty          = "worktree_dirty"        // conflict
	ReasonBusy           = "worktree_busy"         // conflict
	ReasonUnknown        = "worktree_unknown"      // conflict: could not be inspected
	ReasonLocked         = "worktree_locked"       // conflict: `git worktree lock`
	ReasonNested         = "worktree_nested"       // conflict: a nested repository has work of its own
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
	return team.Errorf(team.CodeInternal, "%s: %w", what, err).WithReason(ReasonGitFailed)
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

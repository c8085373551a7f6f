package worktree

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// CommitIn is a commit to make. Without an author, Commit uses the user's
// configured identity, or "teamctl" if there is none.
type CommitIn struct {
	Message     string
	AuthorName  string
	AuthorEmail string
}

const (
	defaultName  = "teamctl"
	defaultEmail = "teamctl@localhost"
)

// Commit commits everything in the worktree at path that is not ignored, and
// returns the commit and its changed files. It runs no hooks and signs nothing.
// With nothing to commit, changed is false and sha is HEAD. Commit leaves out a
// repository inside the worktree; Status names it. A merge whose conflicts are
// resolved is concluded.
//
// Errors: main_worktree (denied); invalid_input, unborn_head (invalid);
// unmerged_files, operation_in_progress, lock_file (conflict); disk_full.
func (r *Repo) Commit(ctx context.Context, path string, in CommitIn) (sha string, files []string, changed bool, err error) {
	if strings.TrimSpace(in.Message) == "" || strings.Contains(in.Message, "\x00") {
		return "", nil, false, invalid(team.ReasonBadInput, "a commit in %s needs a message", path)
	}
	t, err := r.tree(path)
	if err == nil {
		err = t.notMain("commit")
	}
	if err != nil {
		return "", nil, false, err
	}
	st, err := t.status(ctx)
	if err != nil {
		return "", nil, false, err
	}
	switch {
	case st.Unmerged > 0:
		return "", nil, false, conflict(team.ReasonUnmerged, "%s has conflicts: %s", t.path, summary(st)).
			WithHint("resolve them and git add the files, or " + gitHint(t.path, orMerge(st.Operation), "--abort"))
	case st.Operation == "rebase":
		return "", nil, false, underWay(t, st.Operation)
	case st.Clean():
		return st.Head, nil, false, nil
	}
	done, err := t.begin(doing{Kind: doingCommit, Head: st.Head})
	if err != nil {
		return "", nil, false, err
	}
	defer done() // a failed commit leaves the files as they are
	r.step("commit-begun")
	// The explicit "." is required: an exclusion alone would be relative to
	// git's working directory.
	add := []string{"add", "--all", "--", "."}
	for _, c := range st.Changes {
		if c.Nested() {
			add = append(add, ":(top,exclude,literal)"+strings.TrimSuffix(c.Path, "/"))
		}
	}
	if _, err := git(ctx, t.call(add...)); err != nil {
		return "", nil, false, t.lockedOr("add the files of "+t.path, err)
	}
	r.step("added-all")
	c := t.call("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "--file=-")
	c.stdin = []byte(in.Message)
	if c.env, err = t.author(ctx, c.env, in.AuthorName, in.AuthorEmail); err != nil {
		return "", nil, false, err
	}
	if _, err := git(ctx, c); err != nil {
		// A change of timestamps or line endings alone is not a change: git has
		// nothing to commit, which is a failure with this status, as others are.
		if exitStatus(err) == 1 && st.Operation == "" && st.Head != "" {
			if _, differs := t.read(ctx, "diff-index", "--cached", "--quiet", "--ignore-submodules=none", "HEAD", "--"); differs == nil {
				return st.Head, nil, false, nil
			}
		}
		return "", nil, false, t.lockedOr("commit in "+t.path, err)
	}
	if sha, err = t.made(ctx); err != nil {
		return "", nil, false, err
	}
	files, err = t.filesOf(ctx, st.Head, sha)
	return sha, files, true, err
}

func orMerge(operation string) string {
	if operation == "" {
		return "merge"
	}
	return operation
}

func underWay(t tree, operation string) error {
	return conflict(team.ReasonOperationInProgress, "a %s is in progress in %s", operation, t.path).
		WithHint("finish it, or " + gitHint(t.path, operation, "--abort"))
}

// filesOf returns the files that differ between two commits, or all files of
// the second if the first is "".
func (t tree) filesOf(ctx context.Context, from, to string) ([]string, error) {
	args := []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id"}
	if from == "" {
		args = append(args, "--root", to)
	} else {
		args = append(args, from, to)
	}
	out, err := t.read(ctx, args...)
	if err != nil {
		return nil, failed("list the files of "+to, err)
	}
	return lines(out, 0), nil
}

// author adds an identity to env: the given one, or none if the user has
// configured one, or teamctl's own.
func (t tree) author(ctx context.Context, env []string, name, email string) ([]string, error) {
	if name == "" && email == "" {
		out, err := t.read(ctx, "config", "--name-only", "--get-regexp", `^user\.(name|email)$`)
		if err != nil && exitStatus(err) != 1 {
			return nil, failed("read the identity of "+t.path, err)
		}
		set := map[string]bool{}
		for _, key := range lines(out, '\n') {
			set[key] = true
		}
		if len(set) == 2 {
			return env, nil
		}
	}
	if name == "" {
		name = defaultName
	}
	if email == "" {
		email = defaultEmail
	}
	return append(env, identity(name, email)...), nil
}

func identity(name, email string) []string {
	return []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email,
	}
}

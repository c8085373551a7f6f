package worktree

import (
	"context"
	"errors"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// join adds one branch on top of a commit, by the lane's strategy. It returns
// the new commit, or the files in conflict, or onto itself if the branch adds
// nothing new.
func (l *lane) join(ctx context.Context, onto string, it team.LaneItem) (commit string, conflicts []string, err error) {
	if l.in.Strategy == StrategyRebase {
		return l.rebase(ctx, onto, it)
	}
	treeID, conflicts, err := l.r.mergeTree(ctx, onto, it.Tip)
	if errors.Is(err, errNoMergeTree) {
		treeID, conflicts, err = l.mergeInScratch(ctx, onto, it)
	}
	if err != nil || len(conflicts) > 0 {
		return "", conflicts, err
	}
	out, err := l.r.read(ctx, "rev-parse", onto+"^{tree}")
	if err != nil {
		return "", nil, failed("read "+onto, err)
	}
	if oneLine(out) == treeID {
		return onto, nil, nil
	}
	c := call{dir: l.r.root, args: []string{"commit-tree", treeID, "-p", onto}, env: l.env, conf: []string{"core.fsync=all"}}
	msg := l.message(it) + "\n"
	if l.in.Strategy == StrategyMerge {
		c.args = append(c.args, "-p", it.Tip)
	} else {
		text, author, err := l.squashed(ctx, onto, it)
		if err != nil {
			return "", nil, err
		}
		msg, c.env = text, append(c.env[:len(c.env):len(c.env)], author...)
	}
	c.stdin = []byte(msg + "\nTeamctl-Branch: " + it.Branch + "\n")
	if out, err = git(ctx, c); err != nil {
		return "", nil, failed("commit the merge of "+it.Branch, err)
	}
	return oneLine(out), nil, nil
}

// squashed returns the message of the single commit for a branch, and its
// author: the author of the branch's newest commit.
func (l *lane) squashed(ctx context.Context, onto string, it team.LaneItem) (message string, author []string, err error) {
	out, err := l.r.read(ctx, "log", "--no-merges", "--no-show-signature", "--reverse", "--format=%an%x00%ae%x00%s", onto+".."+it.Tip)
	if err != nil {
		return "", nil, failed("read the commits of "+it.Branch, err)
	}
	var subjects []string
	for _, line := range lines(out, '\n') {
		f := strings.Split(line, "\x00")
		if len(f) != 3 {
			continue
		}
		author = []string{"GIT_AUTHOR_NAME=" + f[0], "GIT_AUTHOR_EMAIL=" + f[1]}
		subjects = append(subjects, f[2])
	}
	if len(subjects) == 1 {
		return subjects[0] + "\n", author, nil
	}
	return l.message(it) + "\n\n* " + strings.Join(subjects, "\n* ") + "\n", author, nil
}

// mergeInScratch replaces mergeTree where git has none.
func (l *lane) mergeInScratch(ctx context.Context, onto string, it team.LaneItem) (treeID string, conflicts []string, err error) {
	t, err := l.checkout(ctx, onto)
	if err != nil {
		return "", nil, err
	}
	c := t.call("merge", "--quiet", "--no-ff", "--no-commit", "--no-stat", "--no-verify-signatures", it.Tip)
	c.env = append(c.env, l.env...)
	c.conf = []string{"merge.autoStash=false", "rerere.enabled=false", "merge.renames=true"}
	if _, err = git(ctx, c); err == nil {
		out, err := git(ctx, t.call("write-tree"))
		return oneLine(out), nil, failed("merge "+it.Branch, err)
	}
	err = l.inConflict(ctx, t, it, err, &conflicts)
	return "", conflicts, err
}

// rebase rebases the commits of a branch onto a commit in the scratch worktree.
// The branch itself is not touched.
func (l *lane) rebase(ctx context.Context, onto string, it team.LaneItem) (commit string, conflicts []string, err error) {
	t, err := l.checkout(ctx, it.Tip)
	if err != nil {
		return "", nil, err
	}
	c := t.call("rebase", "--quiet", "--no-stat", "--no-verify", onto)
	c.env = append(c.env, l.env...)
	c.conf = []string{"rebase.autoStash=false", "rebase.autoSquash=false", "rebase.updateRefs=false", "rerere.enabled=false", "core.fsync=all"}
	if _, err = git(ctx, c); err == nil {
		commit, err = t.head(ctx)
		return commit, nil, err
	}
	err = l.inConflict(ctx, t, it, err, &conflicts)
	if _, abort := git(ctx, t.call("rebase", "--abort")); err == nil && abort != nil {
		err = failed("abort the rebase of "+it.Branch, abort)
	}
	return "", conflicts, err
}

// inConflict lists the files in conflict after git has stopped, or returns the
// reason why it stopped.
func (l *lane) inConflict(ctx context.Context, t tree, it team.LaneItem, cause error, files *[]string) error {
	if exitStatus(cause) < 0 {
		return cause
	}
	out, err := t.read(ctx, "diff", "--name-only", "--diff-filter=U", "-z")
	if err != nil {
		return failed("list the conflicts of "+it.Branch, err)
	}
	if *files = lines(out, 0); len(*files) > 0 {
		return nil
	}
	return team.Errorf(team.CodeConflict, "git refuses to merge %s into %s: %w", it.Branch, l.in.Target, cause).WithReason(team.ReasonMergeRefused)
}

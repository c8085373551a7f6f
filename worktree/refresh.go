package worktree

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Refreshed is the result of Refresh.
type Refreshed struct {
	Before    string   `json:"before"`
	Head      string   `json:"head"`
	Conflicts []string `json:"conflicts,omitempty"` // with reason merge_conflict: nothing changed
}

// Refresh rebases the branch of a worktree onto a commit, which becomes its
// base. The worktree must be clean, and the caller ensures that no process is
// working there. On a conflict the worktree is unchanged. The branch's reflog
// keeps its previous commits.
//
// Errors: main_worktree (denied); unknown_revision (not found); worktree_dirty,
// operation_in_progress, merge_conflict (with the files), lock_file (conflict).
func (r *Repo) Refresh(ctx context.Context, path, onto string) (res Refreshed, err error) {
	t, err := r.tree(path)
	if err == nil {
		err = t.notMain("refresh")
	}
	if err != nil {
		return res, err
	}
	to, err := r.tipOf(ctx, onto)
	if err != nil {
		return res, err
	}
	st, err := t.status(ctx)
	if err != nil {
		return res, err
	}
	res.Before, res.Head = st.Head, st.Head
	if !st.Clean() {
		return res, conflict(team.ReasonWorktreeDirty, "%s has uncommitted changes: %s", t.path, summary(st)).WithHint("commit it first")
	}
	if in, err := t.contains(ctx, st.Head, to); err != nil || in {
		return res, err
	}
	env, err := t.author(ctx, t.call().env, "", "")
	if err != nil {
		return res, err
	}
	done, err := t.begin(doing{Kind: doingRefresh, Head: st.Head, Commits: []string{to}})
	if err != nil {
		return res, err
	}
	r.step("refresh-begun")
	c := t.call("rebase", "--quiet", "--no-stat", "--no-verify", to)
	c.env = env
	c.conf = []string{"rebase.autoStash=false", "rebase.autoSquash=false", "rebase.updateRefs=false", "rerere.enabled=false"}
	if _, err = git(ctx, c); err != nil {
		out, _ := t.read(context.WithoutCancel(ctx), "diff", "--name-only", "--diff-filter=U", "-z")
		res.Conflicts = lines(out, 0)
		if op, e := t.operation(); e == nil && op == "rebase" {
			back, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
			defer cancel()
			if e := t.leaveRebase(back); e != nil {
				return res, failed("abort the rebase of "+t.path, e) // Recover completes it
			}
		}
		if exitStatus(err) < 0 {
			return res, err // killed: the record stays for Recover
		}
		done()
		if len(res.Conflicts) > 0 {
			return res, conflict(team.ReasonMergeConflict, "rebasing %s onto %s conflicts in %s", t.path, short(to), strings.Join(res.Conflicts, ", ")).
				WithHint(gitHint(t.path, "rebase", short(to)))
		}
		if locked := lockFile(t.locks()); locked != nil {
			return res, locked
		}
		return res, team.Errorf(team.CodeConflict, "git refuses to rebase %s: %w", t.path, err).WithReason(team.ReasonMergeRefused)
	}
	r.step("refresh-rebased")
	if err := t.setBase(to); err != nil {
		return res, err // Recover completes it
	}
	done()
	res.Head, err = t.made(ctx)
	return res, err
}

// contains reports whether head contains the commit to, and if so makes to the base of the branch,
// unless the base is a later one: after a kill git has rebased the branch, and its old base would
// count the commits of others as its own.
func (t tree) contains(ctx context.Context, head, to string) (bool, error) {
	in, err := isAncestor(ctx, t.readCall(), to, head)
	if err != nil || !in {
		return false, err
	}
	if base := t.recorded().Base; base != "" && base != to {
		later, err := isAncestor(ctx, t.readCall(), base, to)
		if err != nil || !later {
			return err == nil, err
		}
	}
	return true, t.setBase(to)
}

// setBase records the commit that the branch starts from.
func (t tree) setBase(to string) error {
	rec := t.recorded()
	if rec.Base == to {
		return nil
	}
	rec.Base = to
	return noSpaceOrNil(t.record(rec))
}

package worktree

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// checkoutsOf returns the worktrees, including the main one, that have a branch
// checked out.
func (r *Repo) checkoutsOf(ctx context.Context, branch string) ([]Registered, error) {
	list, err := r.heads(ctx)
	if err != nil {
		return nil, err
	}
	var at []Registered
	for _, w := range list {
		if w.Branch == branch && !w.Missing {
			at = append(at, w)
		}
	}
	return at, nil
}

// MayMove returns an error if moving a branch would change it under a checkout,
// whose status would then show the reverse of the change. With update, a clean
// checkout is allowed, because it is fast-forwarded. Errors: target_dirty,
// target_checked_out (conflict).
func (r *Repo) MayMove(ctx context.Context, branch string, update bool) error {
	at, err := r.checkoutsOf(ctx, branch)
	if err != nil {
		return err
	}
	for _, w := range at {
		t, err := r.tree(w.Path)
		if err != nil {
			return err
		}
		st, err := t.status(ctx)
		if err != nil {
			return err
		}
		if st.Staged+st.Unstaged+st.Unmerged > 0 || st.Operation != "" {
			return conflict(team.ReasonTargetDirty, "%s is checked out in %s, which has uncommitted changes: %s", branch, w.Path, summary(st)).
				WithHint("commit or stash them first, or merge into another branch: --into BRANCH")
		}
		if !update {
			return conflict(team.ReasonTargetCheckedOut, "%s is checked out in %s", branch, w.Path).
				WithHint("leave out --update-checkout=false to fast-forward it; or merge into another branch: --into BRANCH")
		}
	}
	return nil
}

// land moves the target from old to new by compare-and-swap; moved is false if
// the target is no longer at old.
func (l *lane) land(ctx context.Context, items []team.LaneItem, old, new string) (moved bool, err error) {
	if err := l.r.MayMove(ctx, l.in.Target, l.in.UpdateCheckout); err != nil {
		return false, err
	}
	if err := l.note(ctx, team.LaneNote{State: team.LaneLanding, Items: items, Old: old, New: new}); err != nil {
		return false, err
	}
	// From here on the operation must finish.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if moved, err = l.r.move(ctx, l.in.Target, old, new); err != nil || !moved {
		return false, err
	}
	l.r.step("moved-target")
	return true, l.note(ctx, team.LaneNote{State: team.LaneLanded, Items: items, Old: old, New: new})
}

// move moves a branch, and fast-forwards its checkout if there is one.
func (r *Repo) move(ctx context.Context, branch, old, new string) (bool, error) {
	at, err := r.checkoutsOf(ctx, branch)
	if err != nil {
		return false, err
	}
	if len(at) > 0 {
		return r.forward(ctx, at[0], old, new)
	}
	ref := "refs/heads/" + branch
	_, err = git(ctx, call{dir: r.root, args: []string{"update-ref", "-m", "teamctl merge", ref, new, old}, conf: []string{"core.fsync=all"}})
	if err == nil {
		return true, nil
	}
	if exitStatus(err) < 0 {
		return false, err
	}
	now, resolve := r.Resolve(ctx, ref)
	if resolve != nil {
		return false, resolve
	}
	if now != old {
		return now == new, nil
	}
	return false, failed("move "+branch, err)
}

// forward fast-forwards a checkout. The record in its git directory says that
// the files were clean, in case git is killed while it writes them.
func (r *Repo) forward(ctx context.Context, w Registered, old, new string) (bool, error) {
	t, err := r.tree(w.Path)
	if err != nil {
		return false, err
	}
	head, err := t.head(ctx)
	if err != nil || head != old {
		return false, err
	}
	done, err := t.begin(doing{Kind: doingForward, Head: old, Commits: []string{new}})
	if err != nil {
		return false, err
	}
	r.step("forwarding")
	c := t.call("merge", "--quiet", "--ff-only", "--no-stat", "--no-verify-signatures", new)
	c.conf = []string{"merge.autoStash=false"}
	_, err = git(ctx, c)
	if err == nil {
		done()
		return true, nil
	}
	if exitStatus(err) < 0 {
		return false, err // git was killed: the record stays
	}
	done()
	if now, e := t.head(ctx); e == nil && now != old {
		return now == new, nil
	}
	if locked := lockFile(t.locks()); locked != nil {
		return false, locked
	}
	return false, team.Errorf(team.CodeConflict, "git refuses to fast-forward %s: %w", w.Path, err).WithReason(team.ReasonMergeRefused).
		WithHint("move the conflicting files away, or merge into another branch: --into BRANCH")
}

// resumeCheckout completes a fast-forward of a checkout that was killed while
// git wrote its files. It resets the files only if each one there is the old
// version, the new version or missing; anything else is the user's change and
// stays.
func (r *Repo) resumeCheckout(ctx context.Context, branch string) error {
	at, err := r.checkoutsOf(ctx, branch)
	if err != nil {
		return err
	}
	for _, w := range at {
		t, err := r.tree(w.Path)
		if err != nil {
			return err
		}
		was, cutShort, err := t.readDoing()
		if err != nil {
			return err
		}
		if !cutShort || was.Kind != doingForward || len(was.Commits) != 1 {
			continue
		}
		if err := r.putForward(ctx, t, was); err != nil {
			return err
		}
		t.forget()
	}
	return nil
}

func (r *Repo) putForward(ctx context.Context, t tree, was doing) error {
	if err := t.quiet(ctx); err != nil {
		return err
	}
	head, err := t.head(ctx)
	if err != nil {
		return err
	}
	st, err := t.status(ctx)
	if err != nil {
		return err
	}
	want, err := r.changed(ctx, was.Head, was.Commits[0])
	if err != nil {
		return err
	}
	begun := st.Operation != "" || head != was.Head && head != was.Commits[0]
	untracked := map[string]bool{}
	for _, c := range st.Changes {
		_, ours := want[c.Path]
		begun = begun || c.Work != "?" || ours && head == was.Head
		untracked[c.Path] = c.Work == "?"
	}
	if !begun { // git had not started, or had finished
		_, err = r.dropLocks(ctx, t)
		return err
	}
	sha, err := r.snapshot(ctx, t, true, "an interrupted fast-forward")
	if err != nil {
		return err
	}
	ref, err := r.rescueRef(ctx, "teamctl", "checkout", sha)
	if err != nil {
		return err
	}
	have, err := r.changed(ctx, was.Head, sha)
	if err != nil {
		return err
	}
	if head != was.Head || st.Operation != "" || !onlyOurs(have, want, untracked) {
		t.forget()
		return conflict(team.ReasonTargetDirty, "a fast-forward of %s was interrupted, and its files have changed since; its state is saved in %s", t.path, ref).
			WithHint(gitHint(t.path, "status"))
	}
	if _, err := r.dropLocks(ctx, t); err != nil {
		return err
	}
	if _, err := git(ctx, t.call("reset", "--quiet", "--hard", was.Head)); err != nil {
		return t.lockedOr("restore "+t.path, err)
	}
	// New files that git wrote before adding them to the index are now in its
	// way.
	args := []string{"clean", "--quiet", "--force", "-d", "--"}
	for p := range want {
		if _, is := have[p]; is && untracked[p] {
			args = append(args, ":(top,literal)"+p)
		}
	}
	if len(args) > 5 {
		if _, err := git(ctx, t.call(args...)); err != nil {
			return t.lockedOr("restore "+t.path, err)
		}
	}
	return nil
}

// changed maps the files that differ between two commits to their mode and
// object in the second.
func (r *Repo) changed(ctx context.Context, from, to string) (map[string]string, error) {
	out, err := r.read(ctx, "diff-tree", "-r", "-z", "--no-renames", from, to)
	if err != nil {
		return nil, failed("compare "+short(from)+" with "+short(to), err)
	}
	m, f := map[string]string{}, lines(out, 0)
	for i := 0; i+1 < len(f); i += 2 {
		if w := strings.Fields(f[i]); len(w) == 5 {
			m[f[i+1]] = w[1] + " " + w[3]
		}
	}
	return m, nil
}

// onlyOurs reports whether every changed file is either as git was about to
// write it or missing in between. Untracked files that git does not write are
// ignored.
func onlyOurs(have, want map[string]string, untracked map[string]bool) bool {
	for p, is := range have {
		to, ours := want[p]
		switch {
		case !ours && untracked[p]:
		case !ours, is != to && !strings.HasPrefix(is, "000000 "):
			return false
		}
	}
	return true
}

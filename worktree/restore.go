package worktree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// RestoreIn configures Restore.
type RestoreIn struct {
	Ref    string // the rescue ref, or any commit
	Path   string // as for Create
	Branch string // as for Create; "" for a detached HEAD
	Reuse  bool   // use an existing Branch; it must be at the commit at which the snapshot was taken
}

// Restore creates a worktree from a snapshot, with the same HEAD, index and
// files. From a commit that is not a snapshot it creates a clean worktree. The
// snapshot is kept. Errors are those of Create, and unknown_revision (not
// found).
func (r *Repo) Restore(ctx context.Context, in RestoreIn) (Worktree, error) {
	sha, err := r.Resolve(ctx, in.Ref)
	if err != nil {
		return Worktree{}, err
	}
	head, index, err := r.parts(ctx, sha)
	if err != nil {
		return Worktree{}, err
	}
	if in.Reuse && in.Branch != "" {
		tip, err := r.Resolve(ctx, "refs/heads/"+in.Branch)
		if err == nil && tip != head {
			return Worktree{}, conflict(team.ReasonBranchExists, "the branch %s has moved on since %s was taken", in.Branch, in.Ref).
				WithHint("choose another branch, then merge")
		}
	}
	w, err := r.Create(ctx, CreateIn{Path: in.Path, Branch: in.Branch, Base: head, Reuse: in.Reuse})
	if err != nil || index == "" {
		return w, err
	}
	t, err := r.tree(w.Path)
	if err == nil {
		err = t.fill(ctx, head, sha, index)
	}
	if err != nil {
		return w, team.Errorf(team.CodeOf(err), "restore %s: %s is incomplete: %w", in.Ref, w.Path, err).
			WithReason(team.ReasonOf(err)).WithHint("remove it and try again; the snapshot is intact")
	}
	return w, nil
}

// parts returns the HEAD and the index commit of a snapshot; for another
// commit, or a snapshot without a HEAD, it returns the commit itself and "".
func (r *Repo) parts(ctx context.Context, sha string) (head, index string, err error) {
	out, err := r.read(ctx, "log", "-1", "--no-show-signature", "--format=%P%n%s", sha)
	if err != nil {
		return "", "", failed("read the snapshot "+sha, err)
	}
	parents, subject, _ := strings.Cut(string(out), "\n")
	p := strings.Fields(parents)
	if len(p) != 2 || !strings.HasPrefix(subject, snapshotMark) {
		return sha, "", nil
	}
	return p[0], p[1], nil
}

// fill turns a new checkout of head into the snapshot work, with its index.
func (t tree) fill(ctx context.Context, head, work, index string) error {
	if _, err := git(ctx, t.call("read-tree", "-m", "-u", head, work)); err != nil {
		return t.lockedOr("check the snapshot out", err)
	}
	files, err := t.changedIn(ctx, head, work)
	if err == nil {
		var exact []exactFile
		exact, err = t.exactOf(ctx, index)
		files = overlay(files, exact)
	}
	if err == nil {
		err = t.rewriteExact(ctx, files)
	}
	if err != nil {
		return failed("check the snapshot out", err)
	}
	if _, err := git(ctx, t.call("read-tree", index)); err != nil {
		return t.lockedOr("restore the index", err)
	}
	if _, err := git(ctx, t.call("update-index", "-q", "--refresh")); err != nil && exitStatus(err) != 1 {
		return t.lockedOr("restore the index", err)
	}
	return nil
}

// changedIn returns the regular files that a snapshot stores byte for byte:
// those that differ from head, unless a filter converts them.
func (t tree) changedIn(ctx context.Context, head, work string) ([]exactFile, error) {
	out, err := t.read(ctx, "diff-tree", "-r", "-z", "--no-renames", "--diff-filter=AMT", head, work)
	if err != nil {
		return nil, err
	}
	fields := lines(out, 0) // ":<mode> <mode> <sha> <sha> <status>", path
	var files []exactFile
	var paths []string
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(fields[i])
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree answered %q", fields[i])
		}
		if strings.HasPrefix(f[1], "100") {
			files = append(files, exactFile{path: fields[i+1], mode: f[1], id: f[3]})
			paths = append(paths, fields[i+1])
		}
	}
	list, err := t.conversions(ctx, paths)
	if err != nil {
		return nil, err
	}
	kept := files[:0]
	for i, f := range files {
		if !list[i].filtered {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// overlay returns list with the entries of over in place of those with the same
// path.
func overlay(list, over []exactFile) []exactFile {
	replaced := make(map[string]bool, len(over))
	for _, f := range over {
		replaced[f.path] = true
	}
	kept := slices.DeleteFunc(list, func(f exactFile) bool { return replaced[f.path] })
	return append(kept, over...)
}

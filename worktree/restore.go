package worktree

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// RestoreIn says where a snapshot becomes a worktree again.
type RestoreIn struct {
	Ref    string // the rescue ref, or any commit
	Path   string // as for Create
	Branch string // as for Create; "" for a detached HEAD
	Reuse  bool   // take Branch as it is; it must be where the snapshot was taken
}

// Restore makes a worktree of a snapshot: HEAD, index and files are what they
// were. Of a commit that is no snapshot it makes a clean one. The snapshot
// stays. Errors are those of Create, and unknown_revision (not found).
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
			return Worktree{}, conflict(ReasonBranchExists, "the branch %s has moved on since %s was taken", in.Branch, in.Ref).
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
		return w, team.Errorf(team.CodeOf(err), "restore %s: %s is not complete: %w", in.Ref, w.Path, err).
			WithReason(team.ReasonOf(err)).WithHint("remove it and try again; the snapshot is whole")
	}
	return w, nil
}

// parts are the HEAD and the index commit of a snapshot; of another commit, or
// of a snapshot that has no HEAD, it is the commit itself and "".
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

// fill turns a fresh checkout of head into the snapshot work, with its index.
func (t tree) fill(ctx context.Context, head, work, index string) error {
	if _, err := git(ctx, t.call("read-tree", "-m", "-u", head, work)); err != nil {
		return t.lockedOr("check the snapshot out", err)
	}
	if err := t.exact(ctx, head, work); err != nil {
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

// exact rewrites the files that the conversion of line ends changed on their
// way out: a snapshot holds their bytes.
func (t tree) exact(ctx context.Context, head, work string) error {
	out, err := t.read(ctx, "diff-tree", "-r", "-z", "--no-renames", "--diff-filter=AMT", head, work)
	if err != nil {
		return err
	}
	fields := lines(out, 0) // ":<mode> <mode> <sha> <sha> <status>", path
	want := map[string]string{}
	var files []Change
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(fields[i])
		if len(f) != 5 {
			return fmt.Errorf("git diff-tree answered %q", fields[i])
		}
		if strings.HasPrefix(f[1], "100") {
			want[fields[i+1]] = f[3]
			files = append(files, Change{Path: fields[i+1]})
		}
	}
	raw, _, err := t.split(ctx, files)
	if err != nil {
		return err
	}
	have, err := t.hash(ctx, raw, nil)
	if err != nil {
		return err
	}
	for i, p := range raw {
		if have[i] == want[p] {
			continue
		}
		data, err := t.read(ctx, "cat-file", "blob", want[p])
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(t.path, filepath.FromSlash(p)), os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		_, err = f.ReadFrom(bytes.NewReader(data))
		if closing := f.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return err
		}
	}
	return nil
}

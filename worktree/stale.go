package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// pruneStale drops the registration of a worktree at path whose directory is
// missing or empty, and returns a note about it. It first saves what only the
// registration holds.
func (r *Repo) pruneStale(ctx context.Context, path string) ([]string, error) {
	admin, err := r.adminAt(path)
	if err != nil || admin == "" {
		return nil, err
	}
	ref, err := r.pruneAdmin(ctx, admin, path, "teamctl", "pruned")
	if err != nil {
		return nil, err
	}
	note := "dropped the registration of a worktree at " + path + " whose directory no longer exists"
	if ref != "" {
		note += "; what was staged or committed there is in " + ref
	}
	return []string{note}, nil
}

// pruneAdmin drops one registration whose directory is missing. Its index may
// hold staged work, and its detached HEAD commits that no ref reaches; they are
// saved to a rescue ref. The caller holds the lock.
func (r *Repo) pruneAdmin(ctx context.Context, admin, path, teamKey, agent string) (ref string, err error) {
	reason, err := os.ReadFile(filepath.Join(admin, "locked"))
	if err == nil && strings.TrimSpace(string(reason)) != "initializing" {
		return "", lockedError(r.root, path, strings.TrimSpace(string(reason)))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", conflict(team.ReasonWorktreeUnknown, "read the registration of %s: %w", path, err)
	}
	sha, err := r.adminStake(ctx, admin, path)
	if err != nil {
		return "", err
	}
	if sha != "" {
		if ref, err = r.rescueRef(ctx, teamKey, agent, sha); err != nil {
			return "", err
		}
	}
	return ref, noSpaceOrNil(r.dropAdmin(admin))
}

func noSpaceOrNil(err error) error {
	if err == nil {
		return nil
	}
	return noSpace(err)
}

func lockedError(root, path, why string) error {
	if why != "" {
		why = ": " + why
	}
	return conflict(team.ReasonWorktreeLocked, "the worktree %s is locked%s", path, why).
		WithHint(gitHint(root, "worktree", "unlock", path))
}

// adminStake returns a commit of what only an admin directory holds, or "".
func (r *Repo) adminStake(ctx context.Context, admin, path string) (string, error) {
	c := call{dir: admin, env: []string{"GIT_DIR=" + admin, "GIT_WORK_TREE=" + admin}}
	t := tree{path: admin, at: path, dir: admin}
	head, err := t.head(ctx)
	if team.ReasonOf(err) == team.ReasonUnbornHead {
		head, err = "", nil
	}
	if err != nil {
		return "", err
	}
	var treeID string
	index := filepath.Join(admin, "index")
	if _, err := os.Lstat(index); err == nil {
		tmp, drop, err := r.tempIndex(index)
		if err != nil {
			return "", err
		}
		defer drop()
		if treeID, err = r.indexTree(ctx, c, tmp, nil); err != nil {
			return "", failed("read what was staged in "+path, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", conflict(team.ReasonWorktreeUnknown, "read the registration of %s: %w", path, err)
	}
	if treeID != "" {
		same := false
		if head != "" {
			out, err := t.read(ctx, "rev-parse", "--verify", head+"^{tree}")
			if err != nil {
				return "", failed("read HEAD of "+path, err)
			}
			same = oneLine(out) == treeID
		}
		if !same {
			parents := t.pending(ctx)
			if head != "" {
				parents = append([]string{head}, parents...)
			}
			sha, err := t.commitOf(ctx, treeID, parents, "teamctl: staged in "+filepath.Base(path)+", whose directory is gone", []string{"core.fsync=all"})
			return sha, failed("save what was staged in "+path, err)
		}
	}
	if branch, err := t.branch(ctx); err != nil || branch != "" || head == "" {
		return "", err
	}
	n, err := r.uncontained(ctx, head, "", path)
	if err != nil || n == 0 {
		return "", err
	}
	return head, nil
}

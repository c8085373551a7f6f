package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Repair undoes or completes what killed processes left unfinished in the
// repository, and returns one sentence for each repair. Create and Remove do
// the same before they begin. What cannot be repaired now is an error, and is
// tried again the next time.
func (r *Repo) Repair(ctx context.Context) ([]string, error) {
	l, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Unlock() }()
	return r.repair(ctx)
}

// repair is Repair under the lock.
func (r *Repo) repair(ctx context.Context) ([]string, error) {
	orphans, err := r.orphans()
	if err != nil {
		for _, o := range orphans {
			o.leave()
		}
		return nil, failed("read the unfinished operations of "+r.common, err)
	}
	var notes []string
	for i, o := range orphans {
		var note string
		switch o.Kind {
		case opCreate:
			note, err = r.repairCreate(ctx, o)
		case opRemove:
			note, err = r.repairRemove(ctx, o)
		default: // written by a newer version
			o.leave()
			continue
		}
		if err != nil {
			for _, rest := range orphans[i:] {
				rest.leave()
			}
			return notes, failed("repair the "+o.Kind+" of "+o.Path, err)
		}
		o.end()
		if note != "" {
			notes = append(notes, note)
		}
	}
	r.sweepIndexes()
	return notes, nil
}

// repairCreate undoes a create whose process died, unless the worktree has been
// used since.
func (r *Repo) repairCreate(ctx context.Context, o *op) (string, error) {
	note := "undid the interrupted creation of " + o.Path
	admin, err := r.adminAt(o.Path)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(o.Path); admin != "" && !o.Scratch && errors.Is(err, fs.ErrNotExist) {
		if _, err := r.pruneAdmin(ctx, admin, o.Path, "teamctl", "repair"); err != nil {
			return "", err
		}
	} else if admin != "" && !o.Scratch {
		t := tree{path: o.Path, at: o.Path, dir: admin}
		begun, err := t.unusedSince(ctx, o.Base)
		if err != nil {
			return "", err
		}
		if !begun {
			return "kept " + o.Path + ": its creation was cut short, but it has work in it", nil
		}
		ref, err := r.saveForeign(ctx, t, o)
		if err != nil {
			return "", err
		}
		if ref != "" {
			note += "; what was in it is in " + ref
		}
	}
	if err := r.undo(ctx, o); err != nil {
		return "", err
	}
	return note, nil
}

// unusedSince reports whether HEAD is where create left it and, if the checkout
// was complete, nothing has changed since.
func (t tree) unusedSince(ctx context.Context, base string) (bool, error) {
	data, err := os.ReadFile(filepath.Join(t.dir, "HEAD"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.Trim(string(data), "0\n") == "" {
		return true, nil // interrupted before git wrote it
	}
	if err != nil {
		return false, err
	}
	head, err := t.head(ctx)
	if team.ReasonOf(err) == team.ReasonUnbornHead {
		return true, nil // the branch was not created
	}
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(filepath.Join(t.dir, "index")); errors.Is(err, fs.ErrNotExist) {
		// Interrupted in the checkout. A reused branch may be at a different
		// commit.
		return true, nil
	}
	st, err := t.status(ctx)
	if err != nil {
		return false, err
	}
	// A branch survives the removal; commits of a detached HEAD would not.
	return st.Clean() && (st.Branch != "" || head == base), nil
}

// saveForeign snapshots a worktree with an interrupted checkout if it holds
// anything but files of its commit: the user may have added some since. A file
// that git was writing when it died looks the same, and is saved too.
func (r *Repo) saveForeign(ctx context.Context, t tree, o *op) (ref string, err error) {
	if _, err := os.Lstat(filepath.Join(t.dir, "index")); !errors.Is(err, fs.ErrNotExist) {
		return "", err // unusedSince has found it complete and clean
	}
	head, err := t.head(ctx)
	if team.ReasonOf(err) == team.ReasonUnbornHead {
		head = o.Base
	} else if err != nil {
		return "", err
	}
	idx, drop, err := r.tempIndex("")
	if err != nil {
		return "", err
	}
	defer drop()
	c := t.call("read-tree", head)
	c.env = append(c.env, "GIT_INDEX_FILE="+idx)
	if _, err := git(ctx, c); err != nil {
		return "", failed("compare "+t.path+" with "+head, err)
	}
	changes, err := t.changes(ctx, idx)
	if err != nil {
		return "", err
	}
	foreign := false
	for _, ch := range changes {
		foreign = foreign || ch.Work != "D" && ch.Work != "."
	}
	if !foreign {
		return "", nil
	}
	sha, err := r.commitTree(ctx, t, snapshotIn{index: idx, head: head, changes: changes, durable: true, why: "a creation that was cut short"})
	if err != nil {
		return "", err
	}
	return r.rescueRef(ctx, "teamctl", "repair", sha)
}

// undoCreate undoes a create of this process and ends its op, or leaves the op
// to the next repair.
func (r *Repo) undoCreate(ctx context.Context, o *op) error {
	ctx, cancel := context.WithTimeout(ctx, finishTime)
	defer cancel()
	if err := r.undo(ctx, o); err != nil {
		o.leave()
		return fmt.Errorf("undo the creation of %s: %w", o.Path, err)
	}
	o.end()
	return nil
}

// undo removes what a create made. When the create began, nothing was
// registered at its path and nothing existed there, so what exists now belongs
// to it.
func (r *Repo) undo(ctx context.Context, o *op) error {
	admin, err := r.adminAt(o.Path)
	if err != nil {
		return err
	}
	if admin != "" || bareStub(o.Path) {
		if err := removeTree(o.Path); err != nil {
			return err
		}
	} else if !o.PathStood {
		_ = os.Remove(o.Path) // only if empty
	}
	if err := r.dropAdmin(admin); err != nil {
		return err
	}
	if err := r.dropPartial(o); err != nil {
		return err
	}
	if o.PathStood {
		if err := os.Mkdir(o.Path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	removeEmpty(o.parents)
	if !o.NewBranch {
		return nil
	}
	return r.dropBranchAt(ctx, o.Branch, o.Base)
}

// bareStub reports whether path contains only a .git file, which git leaves if
// it is killed before it has recorded the path of the worktree.
func bareStub(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 1 || entries[0].Name() != ".git" {
		return false
	}
	return entries[0].Type().IsRegular()
}

// dropBranchAt deletes a branch that is still at the commit where it was
// created and is not checked out; it keeps any other.
func (r *Repo) dropBranchAt(ctx context.Context, branch, at string) error {
	list, err := r.heads(ctx)
	if err != nil {
		return err
	}
	for _, w := range list {
		if w.Branch == branch {
			return nil
		}
	}
	ref := "refs/heads/" + branch
	if tip, known := r.branchRef(branch); known && tip != at {
		return nil
	} else if known {
		return r.dropRef(ctx, ref, at)
	}
	out, err := r.read(ctx, "for-each-ref", "--format=%(objectname) %(refname)", ref)
	if err != nil {
		return failed("look up the branch "+branch, err)
	}
	for _, l := range lines(out, '\n') {
		if l != at+" "+ref {
			continue
		}
		if err := r.dropRef(ctx, ref, at); err != nil {
			return err
		}
	}
	return nil
}

// dropRef deletes a ref that is at a commit: the old value makes it a
// compare-and-swap.
func (r *Repo) dropRef(ctx context.Context, ref, at string) error {
	_, err := git(ctx, call{dir: r.root, args: []string{"update-ref", "-d", ref, at}})
	return failed("delete the branch "+strings.TrimPrefix(ref, "refs/heads/"), err)
}

// admins returns the admin directories of all linked worktrees.
func (r *Repo) admins() ([]string, error) {
	dir := filepath.Join(r.common, "worktrees")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, conflict(team.ReasonWorktreeUnknown, "read the registrations of %s: %w", r.root, err)
	}
	var list []string
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	return list, nil
}

// adminAt returns the admin directory registered for path, or "".
func (r *Repo) adminAt(path string) (string, error) {
	list, err := r.admins()
	if err != nil {
		return "", err
	}
	for _, admin := range list {
		if back, err := backlink(admin); err == nil && back == path {
			return admin, nil
		}
	}
	return "", nil
}

// dropAdmin deletes one registration, as `git worktree prune` would, but no
// others: another missing directory may be on an unmounted disk.
func (r *Repo) dropAdmin(admin string) error {
	if admin == "" {
		return nil
	}
	if filepath.Dir(admin) != filepath.Join(r.common, "worktrees") {
		return fmt.Errorf("%s is not a registration of %s", admin, r.common)
	}
	if err := os.RemoveAll(admin); err != nil {
		return fmt.Errorf("drop the registration %s: %w", admin, err)
	}
	_ = os.Remove(filepath.Dir(admin)) // git also removes it if it is empty
	return nil
}

// dropPartial deletes registrations that a killed git left without their path.
// git made them after the op began and marked them "initializing", which makes
// `git worktree prune` skip them for ever.
func (r *Repo) dropPartial(o *op) error {
	list, err := r.admins()
	if err != nil {
		return err
	}
	for _, admin := range list {
		if !namedFor(filepath.Base(admin), filepath.Base(o.Path)) {
			continue
		}
		info, err := os.Lstat(admin)
		if err != nil || info.ModTime().Before(o.Began.Add(-time.Second)) {
			continue
		}
		if data, err := os.ReadFile(filepath.Join(admin, "gitdir")); !errors.Is(err, fs.ErrNotExist) && (err != nil || len(data) > 0) {
			continue
		}
		if err := r.dropAdmin(admin); err != nil {
			return err
		}
	}
	return nil
}

// namedFor reports whether git would name a registration id for a directory
// called base: the name itself, or the name followed by a number. Names that
// git has to change first count as a match.
func namedFor(id, base string) bool {
	for _, c := range base {
		plain := c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !plain {
			return true
		}
	}
	number, ok := strings.CutPrefix(id, base)
	return ok && strings.Trim(number, "0123456789") == ""
}

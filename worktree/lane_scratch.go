package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

// A lane's scratch worktree is named after the generation of its scope, which
// is in the environment of every process that works there. The scope is
// recorded before the directory is created and until it is deleted, so a
// directory without a record has no owner.

// scratchMark is the prefix of a scratch worktree's name.
const scratchMark = "lane-"

// laneEnv marks a git of a lane as one of its processes.
func laneEnv(generation string) []string { return []string{team.EnvGen + "=" + generation} }

func (l *lane) makeScratch(ctx context.Context, commit string) error {
	if err := os.MkdirAll(l.in.Scratch, 0o700); err != nil {
		return noSpace(err)
	}
	var err error
	if l.scope == nil { // otherwise an earlier attempt failed after opening the scope
		if l.scope, err = l.in.Book.Open(run.Gate, l.in.Scratch); err != nil {
			return noSpace(err)
		}
	}
	path := filepath.Join(l.in.Scratch, scratchMark+l.scope.Generation)
	if _, err := l.r.Create(ctx, CreateIn{Path: path, Base: commit, lane: l.scope.Generation}); err != nil {
		return err
	}
	t, err := l.r.tree(path)
	if err != nil {
		return err
	}
	t.env = laneEnv(l.scope.Generation)
	l.scratch = &t
	l.r.step("scratch-made")
	return nil
}

// dropScratch removes the scratch worktree. If that fails it has no owner from
// then on, and the next sweep removes it.
func (l *lane) dropScratch(ctx context.Context) {
	if l.scope == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if l.scratch != nil {
		_, _ = l.r.removeScratch(ctx, l.in.Scratch, func(generation string) bool { return generation == l.scope.Generation })
	}
	_ = l.scope.Close()
}

// SweepScratch ends the processes of killed lanes and removes their scratch
// worktrees below a directory (LaneIn.Scratch) with their registrations. It
// leaves alone what belongs to a living process. It returns the number of
// worktrees removed.
func (r *Repo) SweepScratch(ctx context.Context, dir string, book run.Book) (removed int, err error) {
	_, err = book.Sweep(ctx)
	n, e := r.removeScratch(ctx, dir, func(generation string) bool { return !book.Has(generation) })
	return n, errors.Join(err, e)
}

// Scratches lists the scratch worktrees below a directory: those that killed
// lanes left, and those of living processes.
func Scratches(dir string, book run.Book) (left, owned []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil // the directory does not exist
	}
	for _, e := range entries {
		generation, ok := laneOf(e.Name())
		switch path := filepath.Join(dir, e.Name()); {
		case ok && book.Owned(generation):
			owned = append(owned, path)
		case ok:
			left = append(left, path)
		}
	}
	return left, owned
}

// laneOf returns the generation in the name of a scratch worktree. Earlier
// versions used only its first eight digits, and kept no record.
func laneOf(name string) (generation string, ok bool) {
	generation, ok = strings.CutPrefix(name, scratchMark)
	digits := len(generation) == 8 || len(generation) == len("01234567-0123-0123-0123-0123456789ab")
	return generation, ok && digits && strings.Trim(generation, "0123456789abcdef-") == ""
}

// removeScratch removes the scratch worktrees of some generations below a
// directory, with their registrations. They contain no work, so nothing is
// inspected or saved.
func (r *Repo) removeScratch(ctx context.Context, dir string, doomed func(generation string) bool) (int, error) {
	probe, err := cleanPath(filepath.Join(dir, "x"))
	if err != nil {
		return 0, err
	}
	dir = filepath.Dir(probe)
	ops, err := r.doomScratch(ctx, dir, func(name string) bool {
		generation, ok := laneOf(name)
		return ok && doomed(generation)
	})
	errs := []error{err}
	for _, o := range ops {
		errs = append(errs, r.deleteAside(o))
	}
	if err := errors.Join(errs...); err != nil {
		return len(ops), team.Errorf(team.CodeUnavailable, "clear %s: %w", dir, err).WithReason(team.ReasonWorktreeUnknown)
	}
	return len(ops), nil
}

// doomScratch moves scratch worktrees aside and drops their registrations; the
// caller deletes the files.
func (r *Repo) doomScratch(ctx context.Context, dir string, doomed func(name string) bool) (ops []*op, err error) {
	admins, err := r.scratchAdmins(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	begun, err := os.ReadDir(r.own("ops")) // of killed operations, possibly in this directory
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	some := len(begun) > 0 || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return doomed(e.Name()) })
	for path := range admins {
		some = some || doomed(filepath.Base(path))
	}
	if !some {
		return nil, nil // avoid the repository's lock, which may be held for long
	}
	l, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Unlock() }()
	if _, err := r.repair(ctx); err != nil { // an interrupted create or remove
		return nil, err
	}
	if admins, err = r.scratchAdmins(dir); err != nil {
		return nil, err
	}
	if entries, err = os.ReadDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); admins[path] == "" {
			admins[path] = "" // a directory without a registration
		}
	}
	var errs []error
	for path, admin := range admins {
		if !doomed(filepath.Base(path)) {
			continue
		}
		o, err := r.doomOne(ctx, path, admin)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ops = append(ops, o)
	}
	return ops, errors.Join(errs...)
}

func (r *Repo) doomOne(ctx context.Context, path, admin string) (*op, error) {
	o := &op{Kind: opRemove, Path: path, Admin: admin, Aside: filepath.Join(filepath.Dir(path), asideMark+team.NewUUID())}
	if err := r.begin(o); err != nil {
		return nil, err
	}
	r.step("remove-begun")
	if err := os.Rename(path, o.Aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.end()
		return nil, err
	}
	r.step("moved")
	err := o.doom()
	if err == nil {
		r.step("doomed")
		var res Removed
		err = r.unregister(ctx, o, &res)
	}
	if err != nil {
		o.leave() // for the next repair
		return nil, fmt.Errorf("remove %s: %w", path, err)
	}
	return o, nil
}

// scratchAdmins returns the registrations of scratch worktrees directly below a
// directory, by path.
func (r *Repo) scratchAdmins(dir string) (map[string]string, error) {
	list, err := r.admins()
	if err != nil {
		return nil, err
	}
	at := map[string]string{}
	for _, admin := range list {
		if back, err := backlink(admin); err == nil && filepath.Dir(back) == dir && strings.HasPrefix(filepath.Base(back), scratchMark) {
			at[back] = admin
		}
	}
	return at, nil
}

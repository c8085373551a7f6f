package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// scratch returns the directory for the scratch worktrees of a repository's lanes.
func (t *Team) scratch(repo string) string { return filepath.Join(scratchRoot(t.Layout), repo) }

func scratchRoot(l team.Layout) string { return filepath.Join(l.Dir, "merge", "scratch") }

// cleared counts what clearScratch removed.
type cleared struct {
	commands  int // interrupted commands
	processes int // processes left by them
	worktrees int // scratch worktrees
}

// clearScratch removes what killed processes left in a team: the processes of gates, set-up
// commands and hooks, and the scratch worktrees of merges with their registrations. It does not
// touch what belongs to a living process.
func (t *Team) clearScratch(ctx context.Context) (done cleared, err error) {
	book := run.BookOf(t.Layout)
	ended, err := book.Sweep(ctx)
	errs := []error{err}
	done.commands = len(ended)
	for _, e := range ended {
		done.processes += e.Processes
	}
	more, err := trees.RepositoriesOf(ctx, t.Ledger)
	if err != nil {
		return done, errors.Join(append(errs, err)...)
	}
	for _, name := range append(more.Names(), "") {
		dir := t.scratch(name)
		if _, err := os.Lstat(dir); err != nil {
			continue // no lane has run there
		}
		r, err := t.repo(ctx, name)
		if err == nil {
			var n int
			n, err = r.SweepScratch(ctx, dir, book)
			done.worktrees += n
		} else if left, _ := worktree.Scratches(dir, book); len(left) == 0 {
			continue // a repository that cannot be read now is skipped
		}
		errs = append(errs, err)
	}
	return done, errors.Join(errs...)
}

// sweepScratch is clearScratch at the end of a merge. It returns failures as notes, since they do
// not make the merge fail.
func (t *Team) sweepScratch(ctx context.Context) (notes []string) {
	if ctx.Err() != nil {
		return nil // left to the next merge
	}
	if _, err := t.clearScratch(ctx); err != nil && ctx.Err() == nil {
		notes = append(notes, fmt.Sprintf("what a killed merge left could not be removed: %v", err))
	}
	return notes
}

// endsWithin bounds the wait for merges of members that were just ended.
const endsWithin = 10 * time.Second

// holdMerges prevents merges of the team from starting until release is called, and clears what
// killed ones left. It refuses while one is in progress. With force, failures to clear are notes.
func (t *Team) holdMerges(ctx context.Context, force bool, out *TeamDeleteOut) (release func(), err error) {
	release = func() {}
	busy := team.Errorf(team.CodeConflict, "a merge of team %s is in progress", t.Layout.Key).WithReason(team.ReasonMergeActive).
		WithHint("teamctl merge queue --team " + t.Layout.Key)
	var lock *filelock.Held
	if force {
		wait, cancel := context.WithTimeout(ctx, endsWithin)
		defer cancel()
		if lock, err = filelock.Lock(wait, t.mergeLock()); wait.Err() != nil {
			return release, busy
		}
	} else {
		var free bool
		if lock, free, err = filelock.TryLock(t.mergeLock()); err == nil && !free {
			return release, busy
		}
	}
	if err != nil {
		return release, team.Errorf(team.CodeUnavailable, "find the merges of team %s: %w", t.Layout.Key, err)
	}
	release = func() { _ = lock.Unlock() }
	if _, err := t.clearScratch(ctx); err != nil {
		if !force {
			return release, err
		}
		out.Notes = append(out.Notes, fmt.Sprintf("what a killed merge left could not be removed: %v", err))
	}
	if _, owned := scratches(t.Layout); len(owned) > 0 { // of a dry run, which takes no lock
		return release, busy
	}
	return release, nil
}

// scratches returns the scratch worktrees of a team's lanes in all of its repositories: those left
// by killed lanes, and those of living processes.
func scratches(l team.Layout) (left, owned []string) {
	root := scratchRoot(l)
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, nil // no lane has run
	}
	dirs := []string{root}
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(root, e.Name()))
	}
	for _, dir := range dirs {
		l, o := worktree.Scratches(dir, run.BookOf(l))
		left, owned = append(left, l...), append(owned, o...)
	}
	return left, owned
}

// killedCheck reports what killed merges and commands have left in a team.
func killedCheck(info TeamInfo) (_ Check, bad bool) {
	l := team.Layout{Key: info.Key, Dir: info.Path}
	book := run.BookOf(l)
	scopes, err := book.Left()
	left, _ := scratches(l)
	name := "team " + info.Key
	switch {
	case err != nil:
		return checked(name, "%v", err).warn("look at " + book.Dir), true
	case len(scopes)+len(left) == 0:
		return Check{}, false
	}
	return checked(name, "left by killed processes: commands: %d, scratch worktrees of merges: %d", len(scopes), len(left)).
		warn("teamctl doctor --repair removes it"), true
}

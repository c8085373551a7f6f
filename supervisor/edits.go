package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/treewatch"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// Who changes the same files as another is told when he does it, not only when he
// comes to rest, which a plain command never does. The directories of all worktrees
// are watched, each until it has told once; what it tells of is looked at a moment
// later, and then it is watched again. A team at rest costs nothing, one that writes
// without end a hundredth of a core.

const (
	editDirs  = 4096            // directories watched in one worktree
	editPause = time.Second     // least time from a change to the look at it
	editShare = 100             // what the looks rest, as a multiple of what they take; no longer than Policy.Edits
	editLimit = 2 * time.Minute // for one look
)

// editing is one worktree that is watched; it belongs to the loop.
type editing struct {
	row     ledger.Member
	dirs    []string      // nil before the first look
	looking bool          // a look is under way
	again   bool          // something changed meanwhile
	took    time.Duration // the last look
	told    string        // the error that was told
}

// watchEdits watches the worktrees of the members that run, once there is another
// worktree to overlap with, and forgets those of members that do not.
func (s *Supervisor) watchEdits() {
	own := 0
	for _, m := range s.members {
		if m.row.Worktree != "" && m.row.Spec.WorktreeMode == "own" {
			own++
		}
	}
	for session := range s.edits {
		if m := s.members[session]; own < 2 || m == nil || m.row.Observed != team.Running {
			s.dropEdits(session)
		}
	}
	if own < 2 || s.noTrees {
		return
	}
	for session, m := range s.members {
		if m.row.Worktree == "" || m.row.Spec.WorktreeMode != "own" || m.row.Observed != team.Running || s.edits[session] != nil {
			continue
		}
		if s.trees == nil && !s.openTrees() {
			return
		}
		s.edits[session] = &editing{row: m.row}
		s.lookEdits(session)
	}
}

// openTrees opens the watch; where there is none, comings to rest are looked at as ever.
func (s *Supervisor) openTrees() bool {
	w, err := treewatch.New(func(session string) { s.send(edited{session}) })
	if err != nil {
		s.noTrees = true
		if !errors.Is(err, treewatch.ErrUnsupported) {
			s.log.Warn("watch worktrees", "err", err)
		}
		return false
	}
	s.trees = w
	s.work.Add(1)
	go func() { // its goroutine ends with us
		defer s.work.Done()
		<-w.Done()
	}()
	return true
}

func (s *Supervisor) closeTrees() {
	if s.trees != nil {
		s.trees.Close()
	}
}

func (s *Supervisor) dropEdits(session string) {
	delete(s.edits, session)
	s.after("edits:"+session, 0, nil)
	s.trees.Drop(session)
}

// edited is that something has changed in a worktree.
type edited struct{ session string }

func (e edited) apply(s *Supervisor) {
	ed := s.edits[e.session]
	switch {
	case ed == nil:
	case ed.looking:
		ed.again = true
	case s.timers["edits:"+e.session] == nil:
		s.after("edits:"+e.session, min(s.policy.Edits, max(editPause, editShare*ed.took*time.Duration(len(s.edits)))), lookEdits(e))
	}
}

// lookEdits looks at what a member has changed.
type lookEdits struct{ session string }

func (l lookEdits) apply(s *Supervisor) {
	delete(s.timers, "edits:"+l.session)
	s.lookEdits(l.session)
}

func (s *Supervisor) lookEdits(session string) {
	ed := s.edits[session]
	if ed == nil || ed.looking {
		return
	}
	ed.looking = true
	row, dirs, trees := ed.row, ed.dirs, s.trees
	s.step(func(ctx context.Context) message {
		select {
		case s.saves <- struct{}{}:
			defer func() { <-s.saves }()
		case <-ctx.Done():
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, editLimit)
		defer cancel()
		l := looked{session: session}
		began := time.Now()
		l.dirs, l.more, l.err = s.noteEdits(ctx, trees, row, dirs)
		l.took = time.Since(began)
		return l
	})
}

// noteEdits watches the directories again, and then looks: what changes in between
// is told once more. It returns the directories to watch from now on, and whether
// there are more than are watched yet.
func (s *Supervisor) noteEdits(ctx context.Context, trees *treewatch.Watch, row ledger.Member, dirs []string) ([]string, bool, error) {
	repo, _, err := worktree.OpenWorktree(ctx, row.Worktree)
	if err != nil {
		return dirs, false, err
	}
	if dirs == nil {
		if dirs, err = repo.Dirs(ctx, row.Worktree, editDirs); err != nil {
			return nil, false, err
		}
	}
	full := trees.Arm(row.SessionKey, dirs)
	files, err := Saver{Layout: s.cfg.Layout, Ledger: s.cfg.Ledger}.noteChanges(ctx, repo, row)
	if err != nil {
		return dirs, false, err
	}
	had := len(dirs)
	for _, d := range worktree.DirsOf(row.Worktree, files, editDirs) {
		if len(dirs) < editDirs && !slices.Contains(dirs, d) {
			dirs = append(slices.Clip(dirs), d)
		}
	}
	return dirs, len(dirs) > had, full
}

// looked is the end of a look.
type looked struct {
	session string
	dirs    []string
	more    bool // directories that were not watched yet, where something may be younger than the look
	took    time.Duration
	err     error
}

func (l looked) apply(s *Supervisor) {
	ed := s.edits[l.session]
	if ed == nil {
		s.trees.Drop(l.session) // armed after the member had gone
		return
	}
	again := ed.again || l.more
	ed.dirs, ed.took, ed.looking, ed.again = l.dirs, l.took, false, false
	gone := errors.Is(l.err, fs.ErrNotExist) || team.CodeOf(l.err) == team.CodeNotFound // the agent's worktree was deleted
	if l.err != nil && !gone {
		if l.err.Error() != ed.told {
			ed.told = l.err.Error()
			s.log.Warn("look at what a member changes", "member", ed.row.Name, "err", l.err)
		}
		if ed.dirs == nil {
			s.after("edits:"+l.session, s.policy.Edits, lookEdits{l.session})
		}
	}
	if again {
		edited{l.session}.apply(s)
	}
}

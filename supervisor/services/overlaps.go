package services

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/treewatch"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

const (
	editDirs  = 4096            // directories watched in one worktree
	editPause = time.Second     // minimum time from a change to the look at it
	editShare = 100             // pause after a look, as a multiple of its duration; at most Overlaps.most
	editLimit = 2 * time.Minute // bound of one look
)

// Overlaps warns members that edit the same files while they edit, not only when they go idle,
// which a plain command never does. It watches the directories of all worktrees, each until the
// first event; a moment later it looks at the change, and then watches the directory again. An
// idle team costs nothing, one that writes continuously a hundredth of a core.
type Overlaps struct {
	loop.Quiet
	team  loop.Team
	slots Slots
	most  time.Duration // maximum time from a change to the look at it

	edits map[string]*editing // by session
	trees *treewatch.Watch    // nil before it is needed
	none  bool                // directory trees cannot be watched on this system
}

// NewOverlaps returns the service; most bounds the time from a change to the look at it.
func NewOverlaps(t loop.Team, slots Slots, most time.Duration) *Overlaps {
	return &Overlaps{team: t, slots: slots, most: most, edits: map[string]*editing{}}
}

// editing is a watched worktree.
type editing struct {
	row     ledger.Member
	dirs    []string      // nil before the first look
	looking bool          // a look is running
	again   bool          // something changed meanwhile
	took    time.Duration // duration of the last look
	told    string        // the last logged error
}

// Ready starts watching the worktrees of running members.
func (o *Overlaps) Ready() { o.watch() }

// Looked follows the roster.
func (o *Overlaps) Looked(roster bool) {
	if roster {
		o.watch()
	}
}

// Close stops the watch.
func (o *Overlaps) Close() {
	if o.trees != nil {
		o.trees.Close()
	}
}

// watch watches the worktrees of running members once there are two or more, and drops those of
// other members.
func (o *Overlaps) watch() {
	own := map[string]loop.Member{}
	for _, m := range o.Bus.Members() {
		if ownTree(m.Member) {
			own[m.SessionKey] = m
		}
	}
	for session := range o.edits {
		if len(own) < 2 || own[session].Observed != team.Running {
			o.drop(session)
		}
	}
	if len(own) < 2 || o.none {
		return
	}
	for session, m := range own {
		if m.Observed != team.Running || o.edits[session] != nil {
			continue
		}
		if o.trees == nil && !o.open() {
			return
		}
		o.edits[session] = &editing{row: m.Member}
		o.look(session)
	}
}

// open opens the watch. If that fails, changes are looked at when a member goes idle.
func (o *Overlaps) open() bool {
	w, err := treewatch.New(func(session string) { o.Bus.Send("edited", func() { o.edited(session) }) })
	if err != nil {
		o.none = true
		if !errors.Is(err, treewatch.ErrUnsupported) {
			o.team.Log.Warn("watch worktrees", "err", err)
		}
		return false
	}
	o.trees = w
	o.Bus.Go("watch worktrees", func(context.Context) func() { // its goroutine ends with the loop
		<-w.Done()
		return nil
	})
	return true
}

func (o *Overlaps) drop(session string) {
	delete(o.edits, session)
	o.Bus.After("edits:"+session, 0, nil)
	o.trees.Drop(session)
}

// edited is called when something in a worktree has changed.
func (o *Overlaps) edited(session string) {
	ed := o.edits[session]
	switch {
	case ed == nil:
	case ed.looking:
		ed.again = true
	case !o.Bus.Armed("edits:" + session):
		o.later(session, max(editPause, editShare*ed.took*time.Duration(len(o.edits))))
	}
}

func (o *Overlaps) later(session string, d time.Duration) {
	o.Bus.After("edits:"+session, min(o.most, d), func() { o.look(session) })
}

// look examines what a member has changed.
func (o *Overlaps) look(session string) {
	ed := o.edits[session]
	if ed == nil || ed.looking {
		return
	}
	ed.looking = true
	row, dirs, trees := ed.row, ed.dirs, o.trees
	o.Bus.Go("look at edits", func(ctx context.Context) func() {
		if !o.slots.take(ctx) {
			return nil
		}
		defer o.slots.give()
		ctx, cancel := context.WithTimeout(ctx, editLimit)
		defer cancel()
		l := looked{session: session}
		began := time.Now()
		l.dirs, l.more, l.err = o.note(ctx, trees, row, dirs)
		l.took = time.Since(began)
		return func() { o.looked(l) }
	})
}

// note watches the directories again, and then looks: a change in between is reported again. It
// returns the directories to watch from now on, and whether some of them are not watched yet.
func (o *Overlaps) note(ctx context.Context, trees *treewatch.Watch, row ledger.Member, dirs []string) ([]string, bool, error) {
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
	files, err := Saver{Layout: o.team.Layout, Ledger: o.team.Ledger}.noteChanges(ctx, repo, row)
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

// looked is the result of a look.
type looked struct {
	session string
	dirs    []string
	more    bool // some directories were not watched yet and may have changed since the look
	took    time.Duration
	err     error
}

func (o *Overlaps) looked(l looked) {
	ed := o.edits[l.session]
	if ed == nil {
		o.trees.Drop(l.session) // re-armed after the member had left
		return
	}
	again := ed.again || l.more
	ed.dirs, ed.took, ed.looking, ed.again = l.dirs, l.took, false, false
	deleted := errors.Is(l.err, fs.ErrNotExist) || team.CodeOf(l.err) == team.CodeNotFound // the agent's worktree
	if l.err != nil && !deleted {
		if l.err.Error() != ed.told {
			ed.told = l.err.Error()
			o.team.Log.Warn("look at what a member changes", "member", ed.row.Name, "err", l.err)
		}
		if ed.dirs == nil {
			o.later(l.session, o.most)
		}
	}
	if again {
		o.edited(l.session)
	}
}

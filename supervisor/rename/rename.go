// Package rename renames members. A member is identified by its session; its mailbox file, its
// bundle and some rows carry its name. It must have no process.
//
// A rename has these steps, and the process may be killed after each:
//
//	begun    the ledger reserves both names; everything has the old one
//	linked   the mailbox file has both names, and its locks are held
//	applied  the ledger has the new name
//	mailbox  the mailbox file has the new name only
//	bundle   the bundle has the new name
//
// Then the old name is released. The next supervisor completes open renames before it
// looks at any member, and a start completes those of its member. The worktree and the
// branch keep their names, because agent programs find a conversation by the directory it
// was held in.
package rename

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// Options are what the renames of a team need.
type Options struct {
	loop.Team
	// Alive returns what shows that a member may have a process; "" for nothing.
	Alive func(ctx context.Context, row ledger.Member) string
	// Dispose removes the dead pane of a member, which has the old name.
	Dispose func(ctx context.Context, row ledger.Member) error
	// Step is called after each step; nil but in tests.
	Step func(name string)
}

// Renames renames the members of a team. Its methods run beside the loop.
type Renames struct {
	Options
	turn chan struct{} // has room for one
}

// New returns the Renames of a team.
func New(o Options) *Renames { return &Renames{Options: o, turn: make(chan struct{}, 1)} }

// To renames the member of a session. Its current name is not a change.
func (s *Renames) To(ctx context.Context, session, name string) error {
	select { // one at a time, because each locks two mailboxes
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	row, err := s.Ledger.MemberBySession(ctx, session)
	if err == nil && row.Name == name {
		err = s.LeftOf(ctx, row)
	}
	if err != nil || row.Name == name {
		return err
	}
	if why := s.Alive(ctx, row); why != "" {
		return team.Errorf(team.CodeConflict, "%s cannot be renamed: %s", row.Name, why).WithReason(team.ReasonMemberRunning).
			WithHint("teamctl explain " + row.Name)
	}
	r, err := s.Ledger.BeginRename(ctx, session, name)
	if err != nil {
		return err
	}
	s.passed("begun")
	if held, err := bundle.Running(s.Layout.Bundle(name)); r.State == ledger.RenameBegun && (err != nil || held) {
		return errors.Join(team.Errorf(team.CodeConflict, "an earlier member called %s still has processes", name).
			WithReason(team.ReasonNameTaken).WithHint("teamctl doctor"), err, s.Ledger.DropRename(ctx, r.ID))
	}
	if err := s.Dispose(ctx, row); err != nil { // the dead pane has the old name
		s.Log.Warn("dispose", "member", row.Name, "err", err)
	}
	return s.carry(ctx, r)
}

// carry completes a rename, or cancels one that cannot be applied.
func (s *Renames) carry(ctx context.Context, r ledger.Rename) error {
	mailer := s.Mailer()
	from, err := mailer.Box(r.Was)
	if err != nil {
		return err
	}
	to, err := mailer.Box(r.Name)
	if err != nil {
		return err
	}
	if r.State == ledger.RenameBegun {
		err = from.MoveTo(ctx, to, func() error {
			s.passed("linked")
			now, err := s.Ledger.ApplyRename(ctx, r.ID)
			if err == nil {
				r = now
				s.passed("applied")
			}
			return err
		})
	} else {
		err = from.Moved(ctx, to)
	}
	if err == nil {
		s.passed("mailbox")
		err = moveBundle(s.Layout, r.Was, r.Name)
	}
	if err == nil {
		s.passed("bundle")
		if err = s.Ledger.EndRename(ctx, r.ID); err == nil {
			s.Log.Info("renamed", "from", r.Was, "to", r.Name)
		}
		return err
	}
	if r.State == ledger.RenameBegun && from.Unmove(ctx, to) == nil && s.Ledger.DropRename(ctx, r.ID) == nil {
		return givenUp{err}
	}
	return err
}

// givenUp is the error of a canceled rename: everything has the old name.
type givenUp struct{ error }

func (g givenUp) Unwrap() error { return g.error }

// moveBundle renames a bundle. An existing directory of the new name belongs to no member
// and is kept beside it.
func moveBundle(l team.Layout, was, name string) (err error) {
	root, err := os.OpenRoot(l.Members())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if _, err := root.Lstat(was); err != nil {
		if errors.Is(err, os.ErrNotExist) { // the member never ran, or it is renamed already
			err = nil
		}
		return err
	}
	if _, err := root.Lstat(name); err == nil {
		aside := "." + name + "-" + time.Now().UTC().Format("20060102T150405.000000000")
		if err := root.Rename(name, aside); err != nil {
			return err
		}
	}
	if err := root.Rename(was, name); err != nil {
		return err
	}
	return atomicfile.SyncDir(root)
}

// Left completes the renames that were interrupted.
func (s *Renames) Left(ctx context.Context) error {
	open, err := s.Ledger.OpenRenames(ctx)
	var all []error
	for _, r := range open {
		if err := s.carry(ctx, r); err != nil {
			s.Log.Warn("complete a rename", "from", r.Was, "to", r.Name, "err", err)
			all = append(all, err)
		}
	}
	return errors.Join(append(all, err)...)
}

// LeftOf is Left for one member, whose bundle must have its name before a start.
func (s *Renames) LeftOf(ctx context.Context, row ledger.Member) error {
	open, err := s.Ledger.OpenRenames(ctx)
	for _, r := range open {
		if r.Session != row.SessionKey {
			continue
		}
		err = s.carry(ctx, r)
		if errors.As(err, new(givenUp)) { // the member is starting and keeps its name
			err = nil
		}
	}
	return err
}

// passed reports a step of a rename to a test.
func (s *Renames) passed(step string) {
	if s.Step != nil {
		s.Step(step)
	}
}

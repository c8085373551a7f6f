package supervisor

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

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

// renameWithin bounds a rename, independently of the caller's context.
const renameWithin = time.Minute

// RenameMember renames the member of a session, on the roster or not, with its mail, its
// bundle and its ledger rows. The member must have no process. Its current name is no
// change. Errors are those of [ledger.Ledger.BeginRename].
func (s *Supervisor) RenameMember(ctx context.Context, session, name string) (ledger.Member, error) {
	return ask(ctx, s, func(reply func(ledger.Member, error)) { s.rename(session, name, reply) })
}

func (s *Supervisor) rename(session, name string, reply func(ledger.Member, error)) {
	var at backends.Attached
	var disposed <-chan struct{}
	if m := s.members[session]; m != nil && m.row.Name != name {
		switch {
		case m.unsure != nil:
			reply(m.row, m.unsure)
			return
		case m.row.Observed.Alive():
			reply(m.row, ledger.ErrRunning(m.row, name))
			return
		case m.step != "" || m.stop != nil:
			reply(m.row, team.Errorf(team.CodeConflict, "%s is %s", m.row.Name, m.busy()).WithReason(team.ReasonBusy).
				WithHint("teamctl rename "+m.row.Name+" "+name+", once that is over"))
			return
		}
		m.step = "being renamed"
		at, m.at, disposed = m.at, nil, m.disposed
	}
	s.step(func(ctx context.Context) message {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renameWithin)
		defer cancel()
		if disposed != nil { // the bundle is in use until then
			select {
			case <-disposed:
			case <-ctx.Done():
			}
		}
		if at != nil {
			at.Detach()
		}
		return renamed{session, s.renameTo(ctx, session, name), reply}
	})
}

// renamed reports the end of a rename to the loop.
type renamed struct {
	session string
	err     error
	reply   func(ledger.Member, error)
}

func (r renamed) apply(s *Supervisor) {
	ctx, cancel := s.write()
	defer cancel()
	row, err := s.cfg.Ledger.MemberBySession(ctx, r.session)
	m := s.members[r.session]
	if m != nil {
		m.step = ""
		if err == nil {
			m.row = row
		}
	}
	if r.err == nil {
		r.err = err
	}
	s.publisher.Publish()
	s.publisher.When(func() { r.reply(row, r.err) })
	switch {
	case m == nil:
	case len(m.up) > 0 && m.row.Desired == team.WantRunning && !m.row.Observed.Alive(): // a start was requested meanwhile
		s.begin(m)
	default:
		s.reconcile(m)
	}
}

// renameTo renames a member; it runs outside the loop.
func (s *Supervisor) renameTo(ctx context.Context, session, name string) error {
	select { // one at a time, because each locks two mailboxes
	case s.renames <- struct{}{}:
		defer func() { <-s.renames }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	row, err := s.cfg.Ledger.MemberBySession(ctx, session)
	if err == nil && row.Name == name {
		err = s.renamesLeftOf(ctx, row)
	}
	if err != nil || row.Name == name {
		return err
	}
	if why := s.stillAlive(ctx, row); why != "" {
		return team.Errorf(team.CodeConflict, "%s cannot be renamed: %s", row.Name, why).WithReason(team.ReasonMemberRunning).
			WithHint("teamctl explain " + row.Name)
	}
	r, err := s.cfg.Ledger.BeginRename(ctx, session, name)
	if err != nil {
		return err
	}
	s.passed("begun")
	if held, err := bundle.Running(s.cfg.Layout.Bundle(name)); r.State == ledger.RenameBegun && (err != nil || held) {
		return errors.Join(team.Errorf(team.CodeConflict, "an earlier member called %s still has processes", name).
			WithReason(team.ReasonNameTaken).WithHint("teamctl doctor"), err, s.cfg.Ledger.DropRename(ctx, r.ID))
	}
	if err := s.dispose(ctx, row); err != nil { // the dead pane has the old name
		s.log.Warn("dispose", "member", row.Name, "err", err)
	}
	return s.carryRename(ctx, r)
}

// carryRename completes a rename, or cancels one that cannot be applied.
func (s *Supervisor) carryRename(ctx context.Context, r ledger.Rename) error {
	mailer := s.mailer()
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
			now, err := s.cfg.Ledger.ApplyRename(ctx, r.ID)
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
		err = moveBundle(s.cfg.Layout, r.Was, r.Name)
	}
	if err == nil {
		s.passed("bundle")
		if err = s.cfg.Ledger.EndRename(ctx, r.ID); err == nil {
			s.log.Info("renamed", "from", r.Was, "to", r.Name)
		}
		return err
	}
	if r.State == ledger.RenameBegun && from.Unmove(ctx, to) == nil && s.cfg.Ledger.DropRename(ctx, r.ID) == nil {
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

// renamesLeft completes the renames that were interrupted.
func (s *Supervisor) renamesLeft(ctx context.Context) error {
	open, err := s.cfg.Ledger.OpenRenames(ctx)
	var all []error
	for _, r := range open {
		if err := s.carryRename(ctx, r); err != nil {
			s.log.Warn("complete a rename", "from", r.Was, "to", r.Name, "err", err)
			all = append(all, err)
		}
	}
	return errors.Join(append(all, err)...)
}

// renamesLeftOf is renamesLeft for one member, whose bundle must have its name before a start.
func (s *Supervisor) renamesLeftOf(ctx context.Context, row ledger.Member) error {
	open, err := s.cfg.Ledger.OpenRenames(ctx)
	for _, r := range open {
		if r.Session != row.SessionKey {
			continue
		}
		err = s.carryRename(ctx, r)
		if errors.As(err, new(givenUp)) { // the member is starting and keeps its name
			err = nil
		}
	}
	return err
}

// passed reports a step of a rename to a test.
func (s *Supervisor) passed(step string) {
	if s.cfg.step != nil {
		s.cfg.step(step)
	}
}

// dispose removes the dead pane of a member, also that of a previous supervisor.
func (s *Supervisor) dispose(ctx context.Context, row ledger.Member) error {
	d, ok := s.cfg.Backends[row.Spec.Backend].(backends.Disposer)
	if !ok {
		return nil
	}
	dir := s.cfg.Layout.Bundle(row.Name)
	pane, err := bundle.ReadPane(dir, "")
	if err != nil {
		return nil // it never had one
	}
	proc, _ := bundle.ReadProc(dir, pane.Generation)
	return d.Dispose(ctx, pane, proc)
}

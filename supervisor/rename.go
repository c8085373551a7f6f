package supervisor

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

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
		case m.step != stepNone || m.stop != nil:
			reply(m.row, team.Errorf(team.CodeConflict, "%s is %s", m.row.Name, m.busy()).WithReason(team.ReasonBusy).
				WithHint("teamctl rename "+m.row.Name+" "+name+", once that is over"))
			return
		}
		m.step = stepRenaming
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
		return renamed{session, s.renames.To(ctx, session, name), reply}
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
		m.step = stepNone
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

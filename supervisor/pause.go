package supervisor

import (
	"context"
	"errors"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// PauseMembers freezes the whole process trees of members, or resumes them. It needs a control
// group; without one it returns CodeUnavailable with the reason no_freezer. Ending a paused member
// thaws it first. No names: all running members.
func (s *Supervisor) PauseMembers(ctx context.Context, names []string, on bool) ([]ledger.Member, error) {
	type live struct {
		at  backends.Attached
		row ledger.Member
	}
	all, err := ask(ctx, s, func(reply func([]live, error)) {
		ms, err := s.byName(names)
		var out []live
		for _, m := range ms {
			switch {
			case m.unsure != nil && len(names) > 0 && err == nil:
				err = m.unsure
			case m.at != nil && m.row.Observed == team.Running:
				out = append(out, live{m.at, m.row})
			case len(names) > 0 && err == nil:
				err = team.Errorf(team.CodeConflict, "%s is not running (%s)", m.row.Name, m.row.Observed).
					WithReason(team.ReasonNotRunning).WithHint("teamctl start " + m.row.Name)
			}
		}
		reply(out, err)
	})
	if err != nil {
		return nil, err
	}
	var rows []ledger.Member
	var errs []error
	for _, l := range all {
		f, ok := l.at.(backends.Freezer)
		if !ok {
			errs = append(errs, team.Errorf(team.CodeUnavailable, "the %s backend cannot pause %s", l.row.Spec.Backend, l.row.Name).WithReason(team.ReasonNoFreezer))
			continue
		}
		if err := f.Freeze(ctx, on); err != nil {
			errs = append(errs, err)
			continue
		}
		row, err := s.notePaused(ctx, l.row, on)
		rows, errs = append(rows, row), append(errs, err)
	}
	return rows, oneOf(errs)
}

// notePaused records the pause in the member's row. A frozen agent is silent and reports nothing:
// whether it is ready shows once it resumes.
func (s *Supervisor) notePaused(ctx context.Context, r ledger.Member, on bool) (ledger.Member, error) {
	return ask(ctx, s, func(reply func(ledger.Member, error)) {
		m := s.members[r.SessionKey]
		if m == nil || m.row.Generation != r.Generation || m.row.Observed != team.Running {
			reply(r, nil)
			return
		}
		reason := ""
		if on {
			reason = team.WhyPaused
			s.after("ready:"+m.row.SessionKey, 0, nil)
			s.output.Stop(s.cfg.Layout.Bundle(m.row.Name))
			m.dropWord()
		}
		was := state.Paused(m.row)
		err := s.patch(m, ledger.MemberPatch{Reason: &reason})
		if was && !on && !m.row.Ready {
			s.awaitReady(m)
		}
		reply(m.row, err)
	})
}

// oneOf joins errors; a single one is returned as it is, with its code.
func oneOf(errs []error) error {
	var list []error
	for _, err := range errs {
		if err != nil {
			list = append(list, err)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return errors.Join(list...)
}

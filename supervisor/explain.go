package supervisor

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Explain reports what a member is doing, the source, and other observations.
func (s *Supervisor) Explain(ctx context.Context, name string) (team.Report, error) {
	member := ""
	r, err := ask(ctx, s, func(reply func(team.Report, error)) {
		ms, err := s.byName([]string{name})
		if err != nil {
			reply(team.Report{}, err)
			return
		}
		m := ms[0]
		member = m.row.Name
		r := s.delivery.Report(m.row.SessionKey)
		r.Mode = m.row.Spec.Mode
		if m.row.Observed == team.Running {
			r.ModeFrom = s.delivery.SetMode(m.row.SessionKey)
		}
		if !m.plan.Channel { // it reports its own activity
			r.Activity, r.Ready, r.Source, r.At = m.row.Activity, m.row.Ready, "its own word", time.UnixMilli(m.row.ActivityAt)
			if r.Activity == team.Waiting || r.Activity == team.Limited {
				r.For = m.row.WaitsFor
				r.Evidence = slices.DeleteFunc([]string{m.row.Reason}, func(s string) bool { return s == "" })
			}
		}
		if m.row.Observed != team.Running {
			r.Verdict = team.Verdict{Activity: team.ActivityUnknown, Tier: team.TierProcess.String(), Source: string(m.row.Observed)}
			r.Evidence = slices.DeleteFunc([]string{m.row.Reason, m.row.ExitText}, func(s string) bool { return s == "" })
		}
		if state.Unknown(m.row) {
			r.Verdict = team.Verdict{Activity: team.ActivityUnknown, Tier: team.TierProcess.String(), Evidence: []string{m.row.Reason}}
		}
		reply(r, nil)
	})
	if err != nil {
		return r, err
	}
	for _, p := range bundle.Problems(s.cfg.Layout.Bundle(member)) { // outside the loop, since it reads files
		r.Evidence = append(r.Evidence, "damaged: "+p.Error())
	}
	return r, nil
}

// InterruptMember interrupts the current turn of a member: by its channel, otherwise like Ctrl-C.
func (s *Supervisor) InterruptMember(ctx context.Context, name string) error {
	end, err := ask(ctx, s, func(reply func(func(context.Context) error, error)) {
		ms, err := s.byName([]string{name})
		if err == nil && (ms[0].at == nil || ms[0].row.Observed != team.Running) {
			err = team.Errorf(team.CodeConflict, "%s does not run", name).WithReason(team.ReasonNotRunning)
		}
		if err != nil {
			reply(nil, err)
			return
		}
		end := s.delivery.Interrupt(ms[0].row.SessionKey)
		if end == nil {
			end = ms[0].at.Interrupt
		}
		reply(end, nil)
	})
	if err != nil {
		return err
	}
	return end(ctx)
}

// onSeen handles an observation of a hook.
func (s *Supervisor) onSeen(n Note) {
	for _, m := range s.members {
		if m.row.Name != n.Agent || m.row.Generation != n.Generation {
			continue
		}
		var o team.Observation
		if err := json.Unmarshal(n.Data, &o); err != nil {
			s.log.Warn("read what a hook saw", "member", n.Agent, "err", err)
			return
		}
		s.delivery.Observed(m.row.SessionKey, n.Generation, o)
	}
}

package supervisor

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// moveStop moves a stop along the table of team.StopState. False: the table has no such edge, and
// nothing was changed.
func (s *Supervisor) moveStop(m *member, to team.StopState) bool {
	from := m.stop.state
	next, err := from.Move(to)
	if err != nil { // an answer or a deadline that comes too late
		s.log.Info("stop", "member", m.row.Name, "err", err)
		return false
	}
	m.stop.state = next
	if s.cfg.step != nil {
		s.cfg.step("stop: " + string(from) + " -> " + string(to))
	}
	return true
}

// askStop sets the desired state of a member to stopped and calls gone once it has stopped. It
// joins a running stop; force makes that one forced.
func (s *Supervisor) askStop(m *member, in team.StopRequest, gone func(team.Stopped)) {
	if in.Wait == 0 {
		in.Wait = s.policy.StopWait
	}
	if order := orderOf(in, m.row.StopOrder); m.row.Desired != team.WantStopped || m.row.StopOrder == nil || *order != *m.row.StopOrder {
		stopped := team.WantStopped
		if err := s.patch(m, ledger.MemberPatch{Desired: &stopped, StopOrder: order, NextStart: new(int64)}); err != nil {
			gone(team.Stopped{Name: m.row.Name, Outcome: team.StopFailed, Reason: err.Error()})
			return
		}
	}
	s.after("backoff:"+m.row.SessionKey, 0, nil)
	s.answerUp(m, team.Errorf(team.CodeConflict, "%s was requested to stop", m.row.Name).WithReason(team.ReasonSuperseded))
	if m.stop != nil {
		m.stop.gone = append(m.stop.gone, gone)
		m.stop.in.Remove = m.stop.in.Remove || in.Remove
		if in.Force && !m.stop.in.Force {
			m.stop.in.Force = true
			if m.step == stepNone && !m.concluding {
				s.endTree(m, team.StopForced)
			}
		}
		return
	}
	m.stop = &stopping{state: team.StopIsOrdered, in: in, began: time.Now(), gone: []func(team.Stopped){gone}}
	switch {
	case m.step == stepStarting: // startDone continues with it
	case m.step == stepAdopting: // adopted continues with it
	case m.unsure != nil:
		adoptAgain{m.row.SessionKey}.apply(s)
	case m.at == nil || !m.row.Observed.Alive():
		s.conclude(m, conclusion{m.row.SessionKey, finalOf(m, team.Completed), m.row.Reason, team.StopAlready})
	default:
		s.proceedStop(m)
	}
}

// orderOf returns the stop as recorded in the ledger; it joins an earlier one.
func orderOf(in team.StopRequest, before *ledger.StopOrder) *ledger.StopOrder {
	return &ledger.StopOrder{
		From: in.From, Reason: in.Reason, Wait: in.Wait.Milliseconds(), Remove: in.Remove || before != nil && before.Remove,
	}
}

// ordered returns the stop recorded by an earlier supervisor.
func (s *Supervisor) ordered(row ledger.Member) team.StopRequest {
	in := team.StopRequest{Wait: s.policy.StopWait}
	if o := row.StopOrder; o != nil {
		in.From, in.Reason, in.Remove = o.From, o.Reason, o.Remove
		if o.Wait > 0 {
			in.Wait = time.Duration(o.Wait) * time.Millisecond
		}
	}
	return in
}

// finalOf keeps the final state of a member that has one.
func finalOf(m *member, otherwise team.Observed) team.Observed {
	if m.row.Observed.Terminal() {
		return m.row.Observed
	}
	return otherwise
}

// proceedStop asks an agent that can answer; any other is ended at once.
func (s *Supervisor) proceedStop(m *member) {
	if m.stop.in.Force {
		s.endTree(m, team.StopForced)
		return
	}
	unready := m.plan.Channel && !m.row.Ready // it takes no messages yet
	if unready || !m.plan.AnswersShutdown && !s.takesPart(m.row) {
		s.endTree(m, team.StopUnasked)
		return
	}
	if !team.KindOf(m.row.Spec.Agent).Worker {
		s.checkpoints.Save(m.row, "asked to stop")
	}
	from := m.stop.in.From
	if from == "" {
		from = team.LeadName
	}
	session, name := m.row.SessionKey, m.row.Name
	post, err := services.ShutdownRequest(from, name, m.stop.in.Reason, m.lastRequest)
	if err != nil {
		s.log.Error("encode shutdown request", "member", name, "err", err)
		s.endTree(m, team.StopUnasked)
		return
	}
	post.ToSession, post.ToGen = session, m.row.Generation
	if !s.moveStop(m, team.StopIsAsked) {
		return
	}
	m.stop.requestID, m.lastRequest = post.RequestID, post.RequestID
	s.after("stop:"+session, m.stop.in.Wait, stopDeadline{session, m.stop.requestID})
	id := m.stop.requestID
	s.step(func(ctx context.Context) message {
		if _, _, err := s.mailer().Post(ctx, post); err != nil {
			s.log.Warn("post shutdown request", "member", name, "err", err)
			return stopDeadline{session, id} // it cannot be asked
		}
		return nil
	})
}

// stopDeadline ends the wait for an agent that was asked.
type stopDeadline struct{ session, requestID string }

func (d stopDeadline) apply(s *Supervisor) {
	m := s.members[d.session]
	if m != nil && m.stop != nil && m.stop.requestID == d.requestID {
		s.endTree(m, team.StopDeadline)
	}
}

// turnEnded ends a foreign agent that has approved and has nothing left to do: it does not exit by
// itself, and need not be awaited.
func (s *Supervisor) turnEnded(m *member) {
	if m.plan.Channel && m.stop != nil && m.stop.state == team.StopIsDraining {
		s.endTree(m, team.StopApproved)
	}
}

// answered handles a member's answer to its shutdown request.
func (s *Supervisor) answered(msg ledger.Message) {
	for _, m := range s.members {
		if m.stop == nil || m.stop.requestID == "" || m.stop.requestID != msg.RequestID || m.row.Name != msg.From {
			continue
		}
		if msg.Kind == team.KindShutdownApproved {
			if !s.moveStop(m, team.StopIsDraining) {
				return
			}
			m.stop.outcome = team.StopApproved
			// It has approved: its exit gets the full grace period.
			s.after("stop:"+m.row.SessionKey, s.policy.Grace, stopDeadline{m.row.SessionKey, m.stop.requestID})
			return
		}
		if _, err := m.stop.state.Move(team.StopIsRejected); err != nil {
			return // it is being ended, by the deadline or by force
		}
		reason := msg.Summary
		if f, ok := inbox.Parse(msg.Text); ok {
			if r, ok := f.(inbox.ShutdownRejected); ok {
				reason = r.Reason
			}
		}
		running := team.WantRunning
		_ = s.patch(m, ledger.MemberPatch{Desired: &running, NextStart: new(int64)})
		s.after("stop:"+m.row.SessionKey, 0, nil)
		again := m.stop.again
		s.answerStop(m, team.StopRejected, reason)
		if again {
			s.answerUp(m, errRejected(m.row.Name, reason))
			return
		}
		s.reconcile(m) // requests to start it are fulfilled: it is running
		return
	}
}

// errRejected is the error for an agent that has rejected its shutdown.
func errRejected(name, reason string) error {
	return team.Errorf(team.CodeConflict, "%s rejected the shutdown: %s", name, reason).WithReason(team.ReasonRejected).
		WithHint("teamctl kill " + name + " ends it without asking")
}

// saveOnStop bounds the checkpoint before a stop.
const saveOnStop = 3 * time.Second

// endTree ends the member's whole process tree in a step.
func (s *Supervisor) endTree(m *member, outcome string) {
	if !s.moveStop(m, team.StopIsEnding) {
		return
	}
	if m.stop.outcome == "" {
		m.stop.outcome = outcome
	}
	s.after("stop:"+m.row.SessionKey, 0, nil)
	m.step = stepStopping
	at, row, session, grace, forced := m.at, m.row, m.row.SessionKey, s.policy.Grace, m.stop.in.Force
	s.step(func(ctx context.Context) message {
		if !forced {
			s.checkpoints.Now(ctx, row, "before it is stopped", saveOnStop)
		}
		return stopDone{session, at.Stop(ctx, grace)}
	})
}

// stopDone is the result of a stop step; the exit itself arrives as exited.
type stopDone struct {
	session string
	err     error
}

func (d stopDone) apply(s *Supervisor) {
	m := s.members[d.session]
	if m == nil {
		return
	}
	m.step = stepNone
	if e := m.pending; e != nil {
		m.pending = nil
		e.apply(s)
		return
	}
	if d.err != nil {
		s.log.Error("stop", "member", m.row.Name, "err", d.err)
		if m.stop != nil && m.row.Observed.Alive() {
			s.answerStop(m, team.StopFailed, d.err.Error())
			if len(m.up) > 0 { // it was to be started again, which is cancelled too
				_ = s.patch(m, ledger.MemberPatch{NextStart: new(int64)})
				s.answerUp(m, team.Errorf(team.CodeInternal, "%s could not be stopped: %w", m.row.Name, d.err))
			}
		}
		return
	}
	s.reconcile(m)
}

// stopped handles the exit of a member that was stopped on purpose.
func (s *Supervisor) stopped(m *member) {
	st := m.stop
	if st.outcome == "" { // it ended before it answered
		st.outcome = team.StopApproved
		if st.requestID == "" {
			st.outcome = team.StopUnasked
		}
	}
	final := team.Completed
	if st.in.Force {
		final = team.Killed
	}
	s.conclude(m, conclusion{m.row.SessionKey, final, st.outcome, st.outcome})
}

// conclusion is the end of a stop: no process of the member is left.
type conclusion struct {
	session string
	final   team.Observed
	reason  string // of the final state
	outcome string
}

// conclude finishes the member of a stop and answers the stop. A request to remove a member has not
// succeeded while it is on the roster: if the ledger does not accept that now, both come later.
func (s *Supervisor) conclude(m *member, c conclusion) {
	st := m.stop
	s.after("stop:"+c.session, 0, nil)
	again := m.row.Desired == team.WantRunning // a later start or restart wins
	if again {
		_ = s.settle(m, c.final, c.reason, nil) // the start replaces it
	} else if s.finish(m, c.final, c.reason, st.in.Remove) != nil {
		m.concluding, st.requestID = true, "" // an answer of the agent comes too late
		s.after("finish:"+c.session, time.Second, c)
		return
	}
	m.concluding = false
	s.answerStop(m, c.outcome, st.reason)
	if again {
		s.begin(m)
	}
}

func (c conclusion) apply(s *Supervisor) {
	if m := s.members[c.session]; m != nil && m.stop != nil && m.concluding {
		s.conclude(m, c)
	}
}

// answerStop reports the outcome of the stop to all waiting requests.
func (s *Supervisor) answerStop(m *member, outcome, reason string) {
	s.moveStop(m, team.StopStateOf(outcome))
	st := m.stop
	m.stop = nil
	if reason == "" {
		reason = m.row.Reason
	}
	out := team.Stopped{
		Name: m.row.Name, Outcome: outcome, Reason: reason, Exit: m.row.ExitText,
		Tasks: m.released, Took: time.Since(st.began),
	}
	s.publisher.When(func() {
		for _, f := range st.gone {
			f(out)
		}
	})
}

package supervisor

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/policy"
	"github.com/teamctl/teamctl/team"
)

// exited is the end of a generation.
type exited struct {
	session, generation string
	exit                backends.Exit
}

func (e exited) apply(s *Supervisor) {
	m := s.members[e.session]
	if m == nil || m.row.Generation != e.generation || !m.row.Observed.Alive() && !m.owes {
		return
	}
	if m.step == stepStopping { // left to stopDone, so that a restart finds no running step
		m.pending = &e
		return
	}
	if s.recordExit(m, e.exit) != nil {
		// The consequences are determined once the ledger has the exit.
		s.after("exit:"+e.session, time.Second, e)
		return
	}
	if m.stop != nil {
		s.stopped(m)
		return
	}
	if m.row.Desired == team.WantStopped {
		s.finishSoon(m, team.Completed, "stopped", s.ordered(m.row).Remove)
		return
	}
	// It ended during a restart whose supervisor is gone, or because of its directory.
	if m.row.NextStart != 0 || m.replaced {
		m.replaced = false
		s.begin(m)
		return
	}
	s.checkpoints.Save(m.row, "its process ended")
	s.follow(m, s.policy.Judge(m.row.Spec.Restart, e.exit, m.ran(e.exit), m.row.Failures))
}

// ran returns how long the generation lived, by a clock that cannot be set if one was used: the
// supervisor's, or that of the agent's parent.
func (m *member) ran(e backends.Exit) time.Duration {
	switch {
	case !m.upSince.IsZero():
		return time.Since(m.upSince)
	case e.Ran > 0:
		return e.Ran
	}
	return e.At.Sub(time.UnixMilli(m.row.StartedAt))
}

// recordExit writes the exit and releases the member's tasks.
func (s *Supervisor) recordExit(m *member, e backends.Exit) error {
	s.forgetReady(m)
	ctx, cancel := s.write()
	defer cancel()
	text, gone, unknown := ExitText(e), team.Exited, team.ActivityUnknown
	p := ledger.MemberPatch{
		Observed: &gone, Activity: &unknown, ExitText: &text, Reason: &e.Reason,
		PID: new(int), Ready: new(bool),
	}
	if !e.At.IsZero() { // it may have ended while no supervisor was running
		at := e.At.UnixMilli()
		p.EndedAt = &at
	}
	err := s.patch(m, p)
	if err != nil {
		return err
	}
	m.released, err = s.cfg.Ledger.ReleaseOwner(ctx, m.row.SessionKey, m.row.Name+" ended: "+text)
	if m.owes = err != nil; m.owes {
		s.log.Error("release tasks", "member", m.row.Name, "err", err)
		return err
	}
	s.log.Info("exited", "member", m.row.Name, "exit", text, "reason", e.Reason, "released", m.released, "leftover", e.Leftover)
	return nil
}

// follow carries out the consequences of an exit. If the ledger does not accept a write now (for
// example because the disk is full), it is retried: nothing else would return to a member left as
// exited.
func (s *Supervisor) follow(m *member, v policy.Verdict) {
	defer func() {
		if m.row.Observed == team.Exited && s.members[m.row.SessionKey] == m {
			s.after("follow:"+m.row.SessionKey, time.Second, follows{m.row.SessionKey, m.row.Generation, v})
		}
	}()
	switch v.Next {
	case team.Backoff:
		next := s.clock.Wall().Add(v.Wait).UnixMilli()
		backoff := team.Backoff
		if err := s.clock.WritePause(s.cfg.Layout.Bundle(m.row.Name), m.row.Generation, v.Wait); err != nil { // before the row, which refers to it
			s.log.Warn("record a back-off", "member", m.row.Name, "err", err)
		}
		if s.patch(m, ledger.MemberPatch{Observed: &backoff, Failures: &v.Failures, NextStart: &next}) != nil {
			return
		}
		m.restarting = true
		s.after("backoff:"+m.row.SessionKey, v.Wait, retry{m.row.SessionKey})
		s.publisher.Publish()
	case team.Failed:
		_ = s.patch(m, ledger.MemberPatch{Failures: &v.Failures})
		reason := v.Reason
		if m.row.Reason != "" && reason != m.row.Reason {
			reason += ": " + m.row.Reason
		}
		// The dead pane stays, so that a person can read the reason.
		_ = s.settle(m, team.Failed, reason, s.failed(m, reason)) // it is exited then, and this comes again
		s.publisher.Publish()
	default:
		_ = s.finish(m, v.Next, v.Reason, false) // as above
	}
}

// follows carries out a verdict that the ledger did not accept before.
type follows struct {
	session, generation string
	v                   policy.Verdict
}

func (f follows) apply(s *Supervisor) {
	m := s.members[f.session]
	if m == nil || m.row.Generation != f.generation || m.row.Observed != team.Exited ||
		m.step != stepNone || m.stop != nil || m.row.Desired != team.WantRunning {
		return // a request has changed the member in between
	}
	s.follow(m, f.v)
}

// finish ends a member's life: it sets the final state, releases its place, and removes it from
// the roster if requested. After an error of the ledger, which is logged, it may be repeated.
func (s *Supervisor) finish(m *member, final team.Observed, reason string, remove bool) error {
	defer s.publisher.Publish()
	if err := s.settle(m, final, reason, s.terminated(m)); err != nil {
		return err
	}
	at := m.at
	m.at = nil
	if at != nil {
		disposed := make(chan struct{})
		m.disposed = disposed
		s.step(func(ctx context.Context) message {
			defer close(disposed)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			if err := at.Dispose(ctx); err != nil {
				s.log.Warn("dispose", "member", m.row.Name, "err", err)
			}
			at.Detach()
			return nil
		})
	}
	if !remove {
		return nil
	}
	ctx, cancel := s.write()
	defer cancel()
	if err := s.leave(ctx, m); err != nil {
		s.log.Error("remove member", "member", m.row.Name, "err", err)
		return err
	}
	delete(s.members, m.row.SessionKey)
	return nil
}

// finishSoon is finish for a member that nobody waits for: if the ledger does not accept it now,
// reconcile continues.
func (s *Supervisor) finishSoon(m *member, final team.Observed, reason string, remove bool) {
	if s.finish(m, final, reason, remove) != nil {
		s.after("finish:"+m.row.SessionKey, time.Second, kick{m.row.SessionKey})
	}
}

package supervisor

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/policy"
	"github.com/teamctl/teamctl/team"
)

// Spawn registers a new member and returns when it is up. If it cannot be started, nothing of it
// remains: no row, no worktree, no process. ctx bounds only the wait: a registered spawn
// continues.
func (s *Supervisor) Spawn(ctx context.Context, in team.SpawnRequest) (ledger.SpawnResult, error) {
	if in.Held {
		return s.spawnHeld(ctx, in.Name)
	}
	if err := in.Check(); err != nil {
		return ledger.SpawnResult{}, err
	}
	backend, err := s.backend(ctx, in.Spec.Backend)
	if err != nil {
		return ledger.SpawnResult{}, err
	}
	in.Spec.Backend = backend.Name()
	row := ledger.Member{
		SessionKey: team.TeammateSessionKey(in.Spec.AgentType), Name: in.Name, Role: in.Role,
		Spec: in.Spec, Desired: team.WantRunning, Observed: team.Pending, Activity: team.ActivityUnknown,
		Branch: in.Branch, Base: in.Base,
	}
	row, renamed, err := s.cfg.Ledger.AddMember(context.WithoutCancel(ctx), row, in.Exact)
	if err != nil {
		return ledger.SpawnResult{}, err
	}
	var about started
	if row.RemovedAt != 0 { // an approval permits one spawn
		return ledger.SpawnResult{}, team.Errorf(team.CodeConflict, "%s was spawned and has left", row.Name).WithReason(team.ReasonMemberRemoved)
	}
	type answer struct {
		row ledger.Member
		err error
	}
	up := make(chan answer, 1)
	// Not bounded by ctx: the requester may be gone by now, but the member is on the roster.
	_, err = ask(context.WithoutCancel(ctx), s, func(reply func(struct{}, error)) {
		tell := func(row ledger.Member, err error) { up <- answer{row, err} }
		if m := s.members[row.SessionKey]; m != nil { // for example of an approval, by an earlier supervisor
			s.whenUp(m, about.of(m, tell))
			reply(struct{}{}, nil)
			return
		}
		m := &member{row: row, starting: starting{first: true, held: in.Hold}}
		s.members[row.SessionKey] = m
		if in.Hold {
			tell(row, nil)
		} else {
			m.up = append(m.up, about.of(m, tell))
			s.reconcile(m)
		}
		reply(struct{}{}, nil)
	})
	if err != nil {
		return ledger.SpawnResult{}, err
	}
	var got answer
	select {
	case got = <-up:
	case <-ctx.Done():
		got.err = context.Cause(ctx)
	case <-s.done:
		select {
		case got = <-up:
		default:
			got.err = ErrStopped
		}
	}
	if got.err != nil {
		return ledger.SpawnResult{}, got.err
	}
	return s.spawnOut(ctx, ledger.SpawnResult{Member: got.row, Renamed: renamed, Again: about.again, Warnings: about.notes}), nil
}

// started collects the remarks on a start.
type started struct {
	notes []string
	again bool
}

// of returns reply, preceded by collecting the remarks on m's start.
func (st *started) of(m *member, reply func(ledger.Member, error)) func(ledger.Member, error) {
	return func(row ledger.Member, err error) {
		st.notes, st.again = m.notes, m.again
		reply(row, err)
	}
}

// spawnHeld starts a member that was spawned on hold.
func (s *Supervisor) spawnHeld(ctx context.Context, name string) (ledger.SpawnResult, error) {
	var about started
	row, err := ask(ctx, s, func(reply func(ledger.Member, error)) {
		ms, err := s.byName([]string{name})
		if err != nil {
			reply(ledger.Member{}, err)
			return
		}
		m := ms[0]
		m.held = false
		s.whenUp(m, about.of(m, reply))
	})
	if err != nil {
		return ledger.SpawnResult{}, err
	}
	return s.spawnOut(ctx, ledger.SpawnResult{Member: row, Again: about.again, Warnings: about.notes}), nil
}

// whenUp answers once a member on the roster is up. An earlier supervisor may have started it, and
// it may have ended.
func (s *Supervisor) whenUp(m *member, reply func(ledger.Member, error)) {
	switch {
	case m.row.Observed == team.Failed:
		reply(m.row, team.Errorf(team.CodeUnavailable, "start %s: %s", m.row.Name, m.row.Reason))
	case m.row.Observed == team.Running || m.row.Observed.Terminal() || m.row.Desired != team.WantRunning:
		reply(m.row, nil)
	default:
		m.up = append(m.up, reply)
		s.reconcile(m)
	}
}

func (s *Supervisor) spawnOut(ctx context.Context, out ledger.SpawnResult) ledger.SpawnResult {
	out.Warnings = append(out.Warnings, policy.LayoutWarnings(out.Member)...)
	if at, _, err := s.attached(ctx, out.Member.Name); err == nil {
		out.Pane, out.Warnings = at.Pane(), append(out.Warnings, policy.LimitWarnings(at.Proc())...)
	}
	return out
}

// StopMembers stops members and returns when every one has an outcome. With NoWait a member that
// was asked has one at once.
func (s *Supervisor) StopMembers(ctx context.Context, in team.StopRequest) ([]team.Stopped, error) {
	return ask(ctx, s, func(reply func([]team.Stopped, error)) {
		ms, err := s.byName(in.Names)
		if err != nil || len(ms) == 0 {
			reply(nil, err)
			return
		}
		var out []team.Stopped
		for _, m := range ms {
			told := false
			gone := func(st team.Stopped) {
				if told {
					return
				}
				told = true
				out = append(out, st)
				if len(out) < len(ms) {
					return
				}
				slices.SortFunc(out, func(a, b team.Stopped) int { return strings.Compare(a.Name, b.Name) })
				reply(out, stopErrors(out, in.Force))
			}
			s.askStop(m, in, gone)
			if in.NoWait && m.stop != nil {
				gone(team.Stopped{Name: m.row.Name, Outcome: team.StopRequested, Request: m.stop.requestID})
			}
		}
	})
}

// stopErrors returns an error for each member that did not stop.
func stopErrors(out []team.Stopped, force bool) error {
	var all *multierror.Error
	var names []string
	for _, st := range out {
		if st.Outcome == team.StopRejected || st.Outcome == team.StopFailed {
			names = append(names, st.Name)
		}
		switch st.Outcome {
		case team.StopRejected:
			all = multierror.Append(all, errRejected(st.Name, st.Reason))
		case team.StopFailed:
			err := team.Errorf(team.CodeInternal, "%s could not be stopped: %s", st.Name, st.Reason)
			if !force {
				err = err.WithHint("teamctl kill " + st.Name + " ends what can be found of it")
			}
			all = multierror.Append(all, err)
		}
	}
	if all == nil {
		return nil
	}
	if len(all.Errors) == 1 {
		return all.Errors[0]
	}
	return team.Errorf(team.CodeOf(all.Errors[0]), "%d members did not stop: %w", len(all.Errors), all).
		WithHint("teamctl kill " + strings.Join(names, " ") + " ends them without asking")
}

// StartMembers sets the desired state of stopped or failed members to running, resets their
// failures, and returns when they are up.
func (s *Supervisor) StartMembers(ctx context.Context, names []string) ([]ledger.Member, error) {
	return s.eachUp(ctx, names, func(m *member) {
		if m.row.Desired == team.WantRunning && m.row.Observed == team.Running {
			return
		}
		m.restarting = false
		s.wantRunning(m)
	})
}

// RestartMembers stops members, asking once, and starts them again.
func (s *Supervisor) RestartMembers(ctx context.Context, names []string) ([]ledger.Member, error) {
	return s.eachUp(ctx, names, func(m *member) {
		if m.at != nil && m.row.Observed.Alive() || m.step == stepStarting {
			s.askStop(m, team.StopRequest{Reason: "restart"}, func(team.Stopped) {})
			if m.stop != nil {
				m.stop.again = true
			}
		}
		s.wantRunning(m)
	})
}

// wantRunning writes the desired state and begins what can begin at once.
func (s *Supervisor) wantRunning(m *member) {
	m.held = false
	running := team.WantRunning
	p := ledger.MemberPatch{Desired: &running, Failures: new(int)}
	if m.stop != nil { // a restart: the next supervisor continues it, see reconcile
		now := s.clock.Wall().UnixMilli()
		p.NextStart = &now
	}
	if err := s.patch(m, p); err != nil {
		s.answerUp(m, err)
		return
	}
	if m.step == stepNone && m.stop == nil && !m.row.Observed.Alive() {
		s.after("backoff:"+m.row.SessionKey, 0, nil)
		s.begin(m)
	}
}

// eachUp applies f to members and waits until each is up or has failed.
func (s *Supervisor) eachUp(ctx context.Context, names []string, f func(*member)) ([]ledger.Member, error) {
	return ask(ctx, s, func(reply func([]ledger.Member, error)) {
		ms, err := s.byName(names)
		if err != nil || len(ms) == 0 {
			reply(nil, err)
			return
		}
		var out []ledger.Member
		var errs []error
		for _, m := range ms {
			up := func(row ledger.Member, err error) {
				out, errs = append(out, row), append(errs, err)
				if len(out) == len(ms) {
					reply(out, oneOf(errs))
				}
			}
			if m.unsure != nil {
				up(m.row, m.unsure)
				continue
			}
			f(m)
			m.up = append(m.up, up)
			s.reconcile(m)
		}
	})
}

// attached returns a living member's generation.
func (s *Supervisor) attached(ctx context.Context, name string) (backends.Attached, ledger.Member, error) {
	type live struct {
		at  backends.Attached
		row ledger.Member
	}
	l, err := ask(ctx, s, func(reply func(live, error)) {
		ms, err := s.byName([]string{name})
		if err != nil {
			reply(live{}, err)
			return
		}
		m := ms[0]
		if m.unsure != nil {
			reply(live{}, m.unsure)
			return
		}
		if m.at == nil {
			reply(live{}, team.Errorf(team.CodeConflict, "%s is not running (%s)", m.row.Name, m.row.Observed).
				WithReason(team.ReasonNotRunning).WithHint("teamctl start "+m.row.Name+" starts it again; teamctl logs "+m.row.Name+" has what it has put out"))
			return
		}
		reply(live{m.at, m.row}, nil)
	})
	return l.at, l.row, err
}

// Capture returns a member's screen with up to scrollback lines above it.
func (s *Supervisor) Capture(ctx context.Context, name string, scrollback int) (string, error) {
	at, _, err := s.attached(ctx, name)
	if err != nil {
		return "", err
	}
	return at.Capture(ctx, scrollback)
}

// TypeText pastes text into a member's terminal.
func (s *Supervisor) TypeText(ctx context.Context, name, text string, enter bool) error {
	at, _, err := s.attached(ctx, name)
	if err != nil {
		return err
	}
	return at.TypeText(ctx, text, enter)
}

// Pane returns the location of a member's screen.
func (s *Supervisor) Pane(ctx context.Context, name string) (team.Pane, error) {
	at, _, err := s.attached(ctx, name)
	if err != nil {
		return team.Pane{}, err
	}
	return at.Pane(), nil
}

// Hide hides a member's screen or shows it again, and updates the list of hidden panes in
// config.json.
func (s *Supervisor) Hide(ctx context.Context, name string, hidden bool) error {
	at, row, err := s.attached(ctx, name)
	if err != nil {
		return err
	}
	h, ok := s.cfg.Backends[row.Spec.Backend].(backends.Hider)
	if !ok {
		return team.Errorf(team.CodeUnavailable, "%s has no pane in tmux: the %s backend cannot hide it", row.Name, row.Spec.Backend).
			WithReason(team.ReasonNotInTmux).WithHint("teamctl attach " + row.Name)
	}
	pane := at.Pane()
	if hidden {
		err = h.Hide(ctx, pane)
	} else {
		err = h.Show(ctx, pane)
	}
	if err != nil {
		return err
	}
	_, err = ask(ctx, s, func(reply func(struct{}, error)) {
		list := without(s.team.Hidden, pane.PaneID)
		if hidden {
			list = append(list, pane.PaneID)
		}
		err := s.setHidden(list)
		s.publisher.When(func() { reply(struct{}{}, err) })
	})
	return err
}

// Status returns the supervisor's view of its team.
func (s *Supervisor) Status(ctx context.Context) (ledger.SupervisorStatus, error) {
	return ask(ctx, s, func(reply func(ledger.SupervisorStatus, error)) {
		st := ledger.SupervisorStatus{
			Team: s.team.Key, PID: os.Getpid(), Version: s.cfg.Version,
			StartedAt: s.started.UnixMilli(), Backends: strings.Split(backendNames(s.cfg.Backends), ", "),
		}
		ms, _ := s.byName(nil)
		for _, m := range ms {
			ms := ledger.SupervisedMember{Member: m.row, Busy: m.busy()}
			if m.at != nil {
				ms.Pane = m.at.Pane()
			}
			st.Members = append(st.Members, ms)
		}
		reply(st, nil)
	})
}

// Quit ends the supervisor; agents keep running. With closeTeam no member may be running, and the
// backends remove the team's resources.
func (s *Supervisor) Quit(ctx context.Context, closeTeam bool) error {
	if closeTeam {
		_, err := ask(ctx, s, func(reply func(struct{}, error)) {
			var alive []string
			for _, m := range s.members {
				if m.row.Observed.Alive() || m.step != stepNone {
					alive = append(alive, m.row.Name)
				}
			}
			slices.Sort(alive)
			if len(alive) > 0 {
				reply(struct{}{}, team.Errorf(team.CodeConflict, "members still run: %s", strings.Join(alive, ", ")).
					WithReason(team.ReasonMembersRunning).WithHint("teamctl shutdown"))
				return
			}
			for _, m := range s.members {
				if m.at != nil {
					m.at.Detach()
					m.at = nil
				}
			}
			reply(struct{}{}, nil)
		})
		if err != nil {
			return err
		}
		s.disposeAll(ctx)
		var all *multierror.Error
		for _, b := range s.cfg.Backends {
			if err := b.CloseTeam(ctx); err != nil {
				all = multierror.Append(all, err)
			}
		}
		if err := all.ErrorOrNil(); err != nil {
			return err
		}
	}
	_, err := ask(ctx, s, func(reply func(struct{}, error)) {
		s.quitting = true
		reply(struct{}{}, nil)
	})
	if IsStopped(err) {
		return nil
	}
	return err
}

// disposeAll removes the dead panes that were kept for reading, including those of earlier
// supervisors.
func (s *Supervisor) disposeAll(ctx context.Context) {
	rows, err := s.cfg.Ledger.Members(ctx, true)
	if err != nil {
		s.log.Warn("read members", "err", err)
		return
	}
	for _, r := range rows {
		if err := s.dispose(ctx, r); err != nil {
			s.log.Warn("dispose", "member", r.Name, "err", err)
		}
	}
}

func backendNames(m map[string]backends.Backend) string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// idleQuit ends a supervisor that has had nothing to supervise for a while.
type idleQuit struct{}

func (idleQuit) apply(s *Supervisor) {
	if s.idle() && !s.copies.Last() {
		s.log.Info("nothing to supervise: leaving")
		s.quitting = true
	}
}

func (s *Supervisor) idle() bool {
	if slices.ContainsFunc(s.services, loop.Service.Busy) {
		return false
	}
	for _, m := range s.members {
		if m.step != stepNone || m.stop != nil || m.row.Observed.Alive() ||
			m.row.Desired == team.WantRunning && !m.row.Observed.Terminal() {
			return false
		}
	}
	return true
}

// armIdle restarts the idle timer after every message.
func (s *Supervisor) armIdle() {
	if s.cfg.Idle > 0 && s.idle() {
		s.after("idle", s.cfg.Idle, idleQuit{})
	} else {
		s.after("idle", 0, nil)
	}
}

// leaseTick renews the leases of living members and expires those of others.
type leaseTick struct{}

func (leaseTick) apply(s *Supervisor) {
	delete(s.timers, "lease")
	var alive []string
	for _, m := range s.members {
		if m.row.Observed.Alive() {
			alive = append(alive, m.row.SessionKey)
		}
	}
	s.step(func(ctx context.Context) message {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		if _, err := s.cfg.Ledger.RenewLeases(ctx, alive, ledger.Lease); err != nil {
			s.log.Warn("renew leases", "err", err)
			return nil // nothing expires while the ledger does not answer
		}
		if ids, err := s.cfg.Ledger.ExpireLeases(ctx); err != nil {
			s.log.Warn("expire leases", "err", err)
		} else if len(ids) > 0 {
			s.log.Info("leases expired", "tasks", ids)
		}
		return nil
	})
}

// armLease arms the lease timer while a member is running.
func (s *Supervisor) armLease() {
	for _, m := range s.members {
		if m.row.Observed.Alive() {
			if s.timers["lease"] == nil {
				s.after("lease", ledger.Lease/3, leaseTick{})
			}
			return
		}
	}
	s.after("lease", 0, nil)
}

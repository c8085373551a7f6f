package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/policy"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// reconcile moves a member towards its desired state, unless a step is running.
func (s *Supervisor) reconcile(m *member) {
	if m.step != stepNone || m.concluding {
		return
	}
	if m.unsure != nil {
		s.answerUp(m, m.unsure)
		return
	}
	if m.row.Desired == team.WantRunning {
		switch m.row.Observed {
		case team.Running:
			switch {
			case m.stop != nil: // it is up again only after its stop
			case m.row.NextStart != 0 && m.at != nil:
				// It is running and has a next start: an earlier supervisor was restarting it.
				m.stop = &stopping{state: team.StopIsOrdered, in: team.StopRequest{Wait: s.policy.StopWait, Reason: "restart"}, began: time.Now()}
				s.proceedStop(m)
			default:
				s.answerUp(m, nil)
			}
		case team.Backoff:
			s.after("backoff:"+m.row.SessionKey, s.policy.PauseLeft(s.clock, s.cfg.Layout.Bundle(m.row.Name), m.row), retry{m.row.SessionKey})
		case team.Pending, team.Exited, team.Starting:
			if m.owesUp() { // it lives, and is up once its row says so
				return
			}
			s.begin(m)
		case team.Failed, team.Completed, team.Killed:
			// nothing automatic: a person starts it again
		}
		return
	}
	if m.at != nil && m.row.Observed.Alive() {
		if m.stop == nil {
			m.stop = &stopping{state: team.StopIsOrdered, in: s.ordered(m.row), began: time.Now()}
			s.proceedStop(m)
		}
		return
	}
	switch remove := s.ordered(m.row).Remove; {
	case remove:
		s.finishSoon(m, finalOf(m, team.Completed), cmp.Or(m.row.Reason, "stopped"), true)
	case !m.row.Observed.Terminal():
		s.finishSoon(m, team.Completed, "stopped", false)
	}
}

// retry ends a back-off.
type retry struct{ session string }

func (r retry) apply(s *Supervisor) {
	if m := s.members[r.session]; m != nil && m.step == stepNone &&
		m.row.Desired == team.WantRunning && m.row.Observed == team.Backoff {
		s.begin(m)
	}
}

// retrySoon ends a back-off now: the cause of a failed start may be over.
func (s *Supervisor) retrySoon(session string) {
	s.after("backoff:"+session, time.Millisecond, retry{session})
}

// settle moves a member without a process to a final state by the transition table, with the
// notice to the lead, if any.
func (s *Supervisor) settle(m *member, final team.Observed, reason string, tell *ledger.Notice) error {
	if m.row.Observed == final {
		return nil
	}
	if !m.row.Observed.CanMove(final) && m.row.Observed.CanMove(team.Exited) {
		exited := team.Exited
		if err := s.patch(m, ledger.MemberPatch{Observed: &exited}); err != nil {
			return err
		}
	}
	return s.patch(m, ledger.MemberPatch{Observed: &final, Reason: &reason, PID: new(int), Ready: new(bool), Notice: tell})
}

// begin writes the intent of a new generation and starts it in a step.
func (s *Supervisor) begin(m *member) {
	if m.row.Observed == team.Starting { // an unfinished start
		s.settleLost(m)
	}
	gen, starting, unknown := team.NewUUID(), team.Starting, team.ActivityUnknown
	token := NewToken()
	hash := ledger.HashToken(token)
	err := s.patch(m, ledger.MemberPatch{
		Generation: &gen, TokenHash: &hash, Observed: &starting, Activity: &unknown,
		PID: new(int), Ready: new(bool), Reason: new(string), ExitText: new(string), NextStart: new(int64),
	})
	if err != nil {
		s.answerUp(m, err)
		s.after("backoff:"+m.row.SessionKey, s.policy.MaxBackoff, kick{m.row.SessionKey})
		return
	}
	m.step = stepStarting
	old, row, teamRow := m.at, m.row, s.team
	m.at = nil
	s.step(func(ctx context.Context) message {
		select {
		case s.starts <- struct{}{}:
			defer func() { <-s.starts }()
		case <-ctx.Done():
			return nil
		}
		ctx, cancel := s.withinStart(ctx)
		defer cancel()
		if old != nil {
			old.Detach() // the backend finds its dead pane by the bundle and reuses it
		}
		done := startDone{session: row.SessionKey, generation: gen}
		done.startResult, done.err = s.start(ctx, teamRow, row, token)
		return done
	})
}

// withinStart bounds a start; its timeout error names that bound.
func (s *Supervisor) withinStart(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.policy.Start,
		team.Errorf(team.CodeTimeout, "not up after %s", s.policy.Start).WithReason(reasonStartTimeout).WithHint("teamctl doctor"))
}

// outOfTime adds the cause of a timeout if the step's error lacks it.
func outOfTime(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || team.ReasonOf(cause) != reasonStartTimeout || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

const reasonStartTimeout = "start_timeout"

// settleLost records that a start was never finished.
func (s *Supervisor) settleLost(m *member) {
	exited, why, text := team.Exited, team.WhyInterrupted, "exit unknown"
	_ = s.patch(m, ledger.MemberPatch{Observed: &exited, Reason: &why, ExitText: &text})
}

// kick makes the loop reconcile a member.
type kick struct{ session string }

func (k kick) apply(s *Supervisor) {
	if m := s.members[k.session]; m != nil {
		s.reconcile(m)
	}
}

// startResult is the result of a start step.
type startResult struct {
	at      backends.Attached
	plan    Plan
	tree    *worktree.Worktree
	created bool // tree, by this step
	again   bool // tree was left by an earlier member of the name
}

// start creates a missing worktree, plans the launch, and makes the backend start it. It runs
// outside the loop.
func (s *Supervisor) start(ctx context.Context, t ledger.TeamRow, row ledger.Member, token string) (res startResult, err error) {
	defer func() { err = outOfTime(ctx, err) }()
	if err := s.renames.LeftOf(ctx, row); err != nil {
		return res, err
	}
	if !team.KindOf(row.Spec.Agent).NoModel {
		q, err := quota.Bounds(ctx, s.cfg.Ledger)
		if err != nil {
			return res, err
		}
		if no := q.Blocks(row, time.Now()); no != nil {
			return res, no
		}
	}
	backend, err := s.backend(ctx, row.Spec.Backend)
	if err != nil {
		return res, err
	}
	dir := row.Spec.Cwd
	tree, created, err := s.trees.Ensure(ctx, t, row)
	if err != nil {
		return res, err
	}
	if tree != nil {
		res.tree, res.created, dir = tree, created, tree.Path
		res.again = row.Worktree == "" && !created && row.Spec.WorktreeMode == "own"
		row.Worktree, row.Branch, row.Base = tree.Path, tree.Branch, tree.Base
	}
	defer func() {
		if err != nil && res.created {
			err = errors.Join(err, s.trees.Drop(res.tree, trees.OwnBranch(t.Key, res.tree.Branch)))
			res.tree, res.created = nil, false
		}
	}()
	if tree != nil {
		if row.Spec.Env, err = s.trees.Furnish(ctx, t, row); err != nil {
			return res, err
		}
		if ctx.Err() != nil { // a long setup does not count as part of the start
			var cancel context.CancelFunc
			ctx, cancel = s.withinStart(s.ctx)
			defer cancel()
		}
	}
	res.plan, err = s.cfg.Launcher.Plan(ctx, PlanIn{
		Layout: s.cfg.Layout, Team: t, Member: row, Dir: dir, Env: s.cfg.Env,
		Members: func(ctx context.Context) ([]ledger.Member, error) { return s.cfg.Ledger.Members(ctx, false) },
	})
	if err != nil {
		return res, err
	}
	if err := s.prepare(ctx, row, token); err != nil {
		return res, err
	}
	res.plan.Env = withToken(res.plan.Env, token)
	h, err := backend.Start(ctx, backends.Launch{
		Team: t.Key, Agent: row.Name, Generation: row.Generation,
		Argv: res.plan.Argv, Env: res.plan.Env, Dir: dir,
		Bundle: s.cfg.Layout.Bundle(row.Name), Notify: s.cfg.Notify,
		Title: row.Name, Color: row.Color,
		Place:  team.Place{Layout: row.Spec.Layout, TMUX: row.Spec.TMUX, TMUXPane: row.Spec.TMUXPane},
		Limits: row.Spec.Limits,
	})
	if err != nil {
		return res, err
	}
	if row.StartedAt == 0 && h.Proc().Agent.PID == 0 { // it was not executed
		return res, s.neverRan(ctx, h, row.Name, dir)
	}
	res.at = h
	return res, nil
}

// neverRan returns why an agent could not be executed. Nothing of its generation remains.
func (s *Supervisor) neverRan(ctx context.Context, h backends.Handle, name, dir string) error {
	defer h.Detach()
	select {
	case <-h.Exited():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := h.Dispose(ctx); err != nil {
		s.log.Warn("dispose", "member", name, "err", err)
	}
	e := h.Exit()
	return notExecutable(name, dir, strings.TrimPrefix(e.Reason, "exec failed: "), e.Code == exitNoProgram)
}

// exitNoProgram is the status for a missing program, as in a shell.
const exitNoProgram = 127

// NotExecutable returns the error for a member whose program, looked up from dir, cannot be
// executed: CodeNotFound if it does not exist, else CodeUnavailable.
func NotExecutable(name, dir string, why error) error {
	missing := errors.Is(why, fs.ErrNotExist) || errors.Is(why, syscall.ENOTDIR)
	return notExecutable(name, dir, why.Error(), missing)
}

func notExecutable(name, dir, why string, missing bool) error {
	code := team.CodeUnavailable
	if missing {
		code = team.CodeNotFound
	}
	return team.Errorf(code, "start %s: cannot execute %s", name, strings.TrimPrefix(why, "stat ")).WithReason(team.ReasonNotExecutable).
		WithHint("a name is looked up in the member's PATH, a path from " + dir)
}

// prepare writes the secret of the generation, and hides from it what an earlier member of the
// name left in the mailbox, and requests to an earlier generation.
func (s *Supervisor) prepare(ctx context.Context, row ledger.Member, token string) error {
	if err := WriteToken(s.cfg.Layout.Bundle(row.Name), token); err != nil {
		return err
	}
	err := s.mailer().Fresh(ctx, row)
	if err != nil && row.StartedAt != 0 { // for its own mail the ledger also says what is dropped
		s.log.Warn("mark dropped mail as read", "member", row.Name, "err", err)
		return nil
	}
	return err
}

// backend returns a backend by name; "auto" means the first that works here.
func (s *Supervisor) backend(ctx context.Context, name string) (backends.Backend, error) {
	if name != "" && name != "auto" {
		b, ok := s.cfg.Backends[name]
		if !ok {
			return nil, team.Errorf(team.CodeInvalid, "unknown backend %q", name).
				WithHint("use one of " + backendNames(s.cfg.Backends) + ", or auto")
		}
		return b, b.Check(ctx)
	}
	var first error
	for _, n := range []string{"tmux", "pty"} {
		b, ok := s.cfg.Backends[n]
		if !ok {
			continue
		}
		err := b.Check(ctx)
		if err == nil {
			return b, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = team.Errorf(team.CodeUnavailable, "no terminal backend is available")
	}
	return nil, first
}

// startDone is the result of a start step.
type startDone struct {
	session, generation string
	startResult
	err error
}

func (d startDone) apply(s *Supervisor) {
	m := s.members[d.session]
	m.step = stepNone
	if d.err != nil && s.ctx.Err() != nil {
		return // cut short by our own exit: the next supervisor continues it
	}
	if d.err != nil {
		s.startFailed(m, d)
		return
	}
	m.at, m.plan, m.upSince = d.at, d.plan, time.Now()
	if m.again = d.again; d.tree != nil {
		m.notes = d.tree.Notes
	}
	now := s.clock.Wall().UnixMilli()
	p := ledger.MemberPatch{StartedAt: &now}
	if m.restarting && !m.first {
		n := m.row.Restarts + 1
		p.Restarts = &n
	}
	if d.tree != nil {
		p.Worktree, p.Branch, p.Base = &d.tree.Path, &d.tree.Branch, &d.tree.Base
	}
	s.writeUp(m, p)
	m.first, m.restarting = false, false
	s.log.Info("up", "member", m.row.Name, "pid", d.at.Proc().Agent.PID, "pane", d.at.Pane().PaneID, "generation", d.generation)
	s.watch(m)
	s.attend(m)
	s.publisher.Publish()
	s.answerUp(m, nil)
	if m.stop != nil {
		s.proceedStop(m)
		return
	}
	s.reconcile(m)
}

// owesUp reports whether a living generation's row does not say yet that it is up.
func (m *member) owesUp() bool { return m.at != nil && m.row.Observed == team.Starting }

// writeUp records in the ledger that a generation is up, with what p says besides. The process is
// alive and its bundle says so: if the ledger does not accept it now, the write is retried.
func (s *Supervisor) writeUp(m *member, p ledger.MemberPatch) {
	running, pid, pane := team.Running, m.at.Proc().Agent.PID, m.at.Pane().PaneID
	if pane != m.row.PaneID { // a reused pane keeps its position
		s.notHidden(m.row.PaneID, pane)
	}
	p.Observed, p.PID, p.PaneID = &running, &pid, &pane
	if s.patch(m, p) != nil {
		s.after("retell:"+m.row.SessionKey, time.Second, retell{m.row.SessionKey, m.row.Generation, p})
	}
}

// retell records a start in the ledger again.
type retell struct {
	session, generation string
	p                   ledger.MemberPatch
}

func (r retell) apply(s *Supervisor) {
	m := s.members[r.session]
	if m == nil || m.row.Generation != r.generation || !m.owesUp() {
		return
	}
	s.writeUp(m, r.p)
	if m.owesUp() {
		return
	}
	s.attend(m)
	s.reconcile(m) // for requests that came meanwhile
}

// attend begins to deliver to a generation that is up, and waits until it takes messages. A row
// that does not say that it is up takes neither its readiness nor its channel: writeUp comes first.
func (s *Supervisor) attend(m *member) {
	if m.owesUp() {
		return
	}
	if !m.row.Ready && !state.Paused(m.row) {
		s.awaitReady(m)
	}
	s.openChannel(m)
}

// startFailed rolls back a first start, and counts any other as a failure.
func (s *Supervisor) startFailed(m *member, d startDone) {
	s.log.Warn("start failed", "member", m.row.Name, "err", d.err)
	if m.first {
		ctx, cancel := s.write()
		defer cancel()
		if err := s.cfg.Ledger.RemoveMember(ctx, m.row.SessionKey); err != nil {
			d.err = errors.Join(d.err, err)
		}
		delete(s.members, m.row.SessionKey)
		s.publisher.Publish() // a requester that is answered finds no trace of it
		s.answerUp(m, d.err)
		if m.stop != nil {
			s.answerStop(m, team.StopAlready, "its start failed: "+d.err.Error())
		}
		return
	}
	s.answerUp(m, d.err)
	exited, text, why := team.Exited, "start failed", d.err.Error()
	if s.patch(m, ledger.MemberPatch{Observed: &exited, ExitText: &text, Reason: &why}) != nil {
		s.after("retell:"+d.session, time.Second, failedStart{d})
		return
	}
	if m.stop != nil {
		m.stop.reason = why
		s.conclude(m, conclusion{d.session, team.Completed, "stopped", team.StopAlready})
		return
	}
	if r := team.ReasonOf(d.err); r == team.ReasonProviderLimited || r == team.ReasonBudgetUsedUp { // not its own fault
		s.follow(m, policy.Verdict{Next: team.Backoff, Failures: m.row.Failures, Wait: s.policy.MaxBackoff, Reason: why})
		return
	}
	e := backends.Exit{Generation: d.generation, ExecFailed: permanent(d.err), Reason: why, At: time.Now()}
	s.follow(m, s.policy.Judge(team.RestartAlways, e, 0, m.row.Failures))
}

// failedStart records a failed start in the ledger again.
type failedStart struct{ startDone }

func (f failedStart) apply(s *Supervisor) {
	if m := s.members[f.session]; m != nil && m.step == stepNone && m.row.Generation == f.generation && m.row.Observed == team.Starting {
		s.startFailed(m, f.startDone)
	}
}

// permanent reports whether an error of a start will not go away by retrying.
func permanent(err error) bool {
	if team.ReasonOf(err) == team.ReasonNotExecutable {
		return true
	}
	switch team.CodeOf(err) {
	case team.CodeInvalid, team.CodeNotFound, team.CodeDenied:
		return true
	default:
		return false
	}
}

// watch reports the generation's exit to the loop.
func (s *Supervisor) watch(m *member) {
	at, session, gen := m.at, m.row.SessionKey, m.row.Generation
	s.step(func(ctx context.Context) message {
		select {
		case <-at.Exited():
			return exited{session, gen, at.Exit()}
		case <-ctx.Done():
			at.Detach()
			return nil
		}
	})
}

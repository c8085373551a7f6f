package supervisor

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// verifyFor is how long a recovered member must stay up before the next one is started.
const verifyFor = 300 * time.Millisecond

// RecoverMembers recovers members that should run and do not, after a reboot or the death of their
// terminal, including those that their restart policy would leave if their end was not observed. A
// member counts as dead only if two independent probes agree (no process holds its run lock, and
// none carries its generation). Members are started one after the other, and each must stay up.
func (s *Supervisor) RecoverMembers(ctx context.Context, names []string) ([]team.Recovered, error) {
	rows, err := ask(ctx, s, func(reply func([]ledger.Member, error)) {
		ms, err := s.byName(names)
		var rows []ledger.Member
		for _, m := range ms {
			rows = append(rows, m.row)
		}
		reply(rows, err)
	})
	if err != nil {
		return nil, err
	}
	var out []team.Recovered
	for _, r := range rows {
		out = append(out, s.recover(ctx, r, len(names) > 0))
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
	}
	return out, nil
}

func (s *Supervisor) recover(ctx context.Context, was ledger.Member, named bool) team.Recovered {
	res := team.Recovered{Name: was.Name, Outcome: "left"}
	r, starting, err := s.present(ctx, was)
	if err != nil {
		res.Outcome, res.Reason = "failed", err.Error()
		return res
	}
	res.Reason = r.Reason
	switch {
	case r.Observed == team.Running && was.Observed != team.Running: // its restart policy was faster
		res.Outcome, res.Reason = "started", ""
		return res
	case r.Observed == team.Running:
		res.Outcome, res.Reason = "running", ""
		return res
	case r.Desired != team.WantRunning:
		return res
	case !named && r.Observed.Terminal() && !lost(r):
		return res // it ended by itself, and that was observed: its policy decides
	}
	if !starting {
		if why := s.stillAlive(ctx, r); why != "" && why != startedAgain {
			res.Outcome, res.Reason = "alive", why
			return res
		}
	}
	if _, err := s.StartMembers(ctx, []string{r.Name}); err != nil {
		res.Outcome, res.Reason = "failed", err.Error()
		return res
	}
	at, _, err := s.attached(ctx, r.Name)
	if err != nil {
		res.Outcome, res.Reason = "failed", err.Error()
		return res
	}
	t := time.NewTimer(verifyFor)
	defer t.Stop()
	select {
	case <-at.Exited():
		res.Outcome, res.Reason = "failed", "it ended at once: "+ExitText(at.Exit())
	case <-t.C:
		res.Outcome, res.Reason = "started", ""
	case <-ctx.Done():
		res.Outcome, res.Reason = "failed", context.Cause(ctx).Error()
	}
	return res
}

// lost reports whether a member was not the cause of its end: the end was not observed, or its
// terminal or the machine went away.
func lost(r ledger.Member) bool {
	return r.ExitText == "exit unknown" || strings.Contains(r.Reason, backends.ReasonServerGone) ||
		strings.Contains(r.Reason, backends.ReasonTerminalGone) || strings.Contains(r.Reason, backends.ReasonShimTerminated)
}

// startedAgain is the reason why a member is alive that its restart policy has started meanwhile.
const startedAgain = "it is started again"

// dyingFor bounds the wait for a run lock that no process of the member explains.
const dyingFor = 5 * time.Second

// present returns the current row of a member, and whether it is being started.
func (s *Supervisor) present(ctx context.Context, r ledger.Member) (now ledger.Member, starting bool, err error) {
	_, err = ask(ctx, s, func(reply func(struct{}, error)) {
		m := s.members[r.SessionKey]
		if m == nil {
			reply(struct{}{}, team.Errorf(team.CodeNotFound, "%s has left the team", r.Name))
			return
		}
		now, starting = m.row, m.step == stepStarting
		reply(struct{}{}, nil)
	})
	return now, starting, err
}

// stillAlive is maybeAlive for a member whose processes may have just been killed: a killed
// process keeps its run lock until its last thread is gone, which a busy machine delays.
func (s *Supervisor) stillAlive(ctx context.Context, r ledger.Member) string {
	pause := 20 * time.Millisecond // it grows, since each look reads the process table
	for late := time.Now().Add(dyingFor); ; <-time.After(pause) {
		pause = min(pause*5/4, 200*time.Millisecond)
		why := s.maybeAlive(r)
		if why == "" || r.Generation == "" || ctx.Err() != nil {
			return why
		}
		if now, starting, err := s.present(ctx, r); err == nil && (starting || now.Generation != r.Generation) {
			return startedAgain
		}
		switch lives, dies := s.processes(r); {
		case lives:
			return why
		case dies:
			late = time.Now().Add(dyingFor)
		case time.Now().After(late):
			return why
		}
	}
}

// processes reports whether a process of the member's generation is alive, and whether one was
// killed or has exited and is still a zombie.
func (s *Supervisor) processes(r ledger.Member) (lives, dies bool) {
	for _, p := range proc.ByGeneration(r.Generation) {
		if !proc.Dying(p.PID) {
			return true, false
		}
		dies = true
	}
	pr, err := bundle.ReadProc(s.cfg.Layout.Bundle(r.Name), r.Generation)
	return false, dies || err == nil && (proc.Zombie(pr.Shim) || proc.Zombie(pr.Agent))
}

// maybeAlive uses both probes; the text is the evidence that the member is alive.
func (s *Supervisor) maybeAlive(r ledger.Member) string {
	held, err := bundle.Running(s.cfg.Layout.Bundle(r.Name))
	switch {
	case err != nil:
		return "its run lock cannot be read: " + err.Error()
	case held:
		return "its run lock is held"
	case r.Generation == "":
		return ""
	}
	if left := proc.ByGeneration(r.Generation); len(left) > 0 {
		return "a process of its last generation lives"
	}
	return ""
}

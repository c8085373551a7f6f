package tool

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
)

// Start starts members that are stopped or have failed, and brings back those that have left the
// team, to the worktree and branch that they left. No names means all stopped members.
func (t *Team) Start(ctx context.Context, c Caller, names []string) ([]Ruled, error) {
	return t.compared(ctx, c, verbStarted, func() ([]ledger.Member, error) { return t.start(ctx, c, names) })
}

func (t *Team) start(ctx context.Context, c Caller, names []string) ([]ledger.Member, error) {
	if err := t.may(ctx, c, OpRule); err != nil {
		return nil, err
	}
	names, err := t.addresses(names)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		if names, err = t.stoppedNames(ctx); err != nil {
			return nil, err
		}
	}
	var here []string
	var gone []ledger.Member
	for _, n := range names {
		m, err := t.Member(ctx, n)
		switch {
		case err != nil:
			return nil, err
		case m.RemovedAt == 0:
			here = append(here, n)
		case team.KindOf(m.Spec.Agent).External:
			return nil, team.Errorf(team.CodeConflict, "%s is a program that had joined: teamctl does not start it", m.Name).
				WithReason(team.ReasonExternal).WithHint("teamctl join " + m.Name)
		default:
			gone = append(gone, m)
		}
	}
	var out []ledger.Member
	if len(here) > 0 {
		if out, err = t.rule(ctx, c, here, Supervisor.StartMembers); err != nil {
			return out, err
		}
	}
	back, err := t.bringBack(ctx, c, gone)
	return append(out, back...), err
}

// stoppedNames returns the members whose desired state is stopped. If there are none, the error
// names those that have left.
func (t *Team) stoppedNames(ctx context.Context) (names []string, err error) {
	all, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.Name != team.LeadName && !team.KindOf(m.Spec.Agent).External && m.Desired == team.WantStopped {
			names = append(names, m.Name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	none := team.Errorf(team.CodeNotFound, "no member is stopped").WithReason(team.ReasonNoneStopped).WithHint("teamctl ps")
	left, err := t.Left(ctx)
	if err != nil {
		return nil, err
	}
	var back []string
	for _, m := range left {
		if !team.KindOf(m.Spec.Agent).External {
			back = append(back, m.Name)
		}
	}
	if len(all) <= 1 && len(back) > 0 {
		none = none.WithHint("teamctl start " + strings.Join(back, " "))
	}
	return nil, none
}

// bringBack spawns members that have left again, as they were spawned.
func (t *Team) bringBack(ctx context.Context, c Caller, gone []ledger.Member) ([]ledger.Member, error) {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return nil, err
	}
	out, errs := make([]ledger.Member, len(gone)), make([]error, len(gone))
	var wg sync.WaitGroup
	for i, m := range gone {
		in := team.SpawnRequest{Name: m.Name, Exact: true, Role: m.Role, Spec: m.Spec}
		in.Spec.Approval, in.Spec.Nth, in.Spec.Fresh = 0, 0, false // an approval permits one spawn of one member
		in.Spec.SpawnedBy = cmp.Or(c.Session, row.LeadSession)
		if !trees.OwnBranch(t.Layout.Key, m.Branch) {
			in.Branch, in.Base = m.Branch, m.Base
		}
		wg.Go(func() {
			res, err := supervise(ctx, t, func(s Supervisor) (ledger.SpawnResult, error) { return s.Spawn(ctx, in) })
			out[i], errs[i] = res.Member, err
		})
	}
	wg.Wait()
	var back []ledger.Member
	for i, m := range out {
		if errs[i] == nil {
			back = append(back, m)
		}
	}
	return back, joinErrors(errs)
}

package tool

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// askedLane has the merges requested in one repository.
type askedLane struct {
	repo *worktree.Repo
	into string
	list []ledger.Merge

	unknown []string // members that may be working, since their activity is unknown
}

// commonTarget returns the target of all lanes, "" if they differ.
func commonTarget(lanes []askedLane) string {
	into := ""
	for i, l := range lanes {
		if i > 0 && l.into != into {
			return ""
		}
		into = l.into
	}
	return into
}

// saveBefore takes a checkpoint of the worktrees whose branches are to be merged. A failed
// checkpoint does not prevent a merge, which does not change the worktree.
func (t *Team) saveBefore(ctx context.Context, asked []ledger.Merge, why string) error {
	for _, a := range asked {
		m, err := t.Ledger.MemberBySession(ctx, a.Session)
		if err != nil {
			return err
		}
		r, err := t.repo(ctx, m.Spec.Repo)
		if err != nil {
			return err
		}
		_, _, _ = t.saver().Save(ctx, r, m, why)
	}
	return ctx.Err()
}

// candidates returns the requested merges, in the order of the names or of joining, and their
// lanes.
func (t *Team) candidates(ctx context.Context, in MergeIn) (all []ledger.Merge, lanes []askedLane, notes []string, err error) {
	if in.Resume {
		if in.Ready || len(in.Members) > 0 {
			return nil, nil, nil, team.Errorf(team.CodeInvalid, "a resumed merge uses the queue: name no members")
		}
		return nil, nil, nil, nil
	}
	if in.Ready == (len(in.Members) > 0) {
		return nil, nil, nil, team.Errorf(team.CodeInvalid, "name the members to merge, or merge all that are ready").
			WithReason(team.ReasonUsage).WithHint("teamctl merge --ready")
	}
	if in.Repo != "" {
		if _, err := t.repo(ctx, in.Repo); err != nil {
			return nil, nil, nil, err
		}
	}
	var unknown []string // members that are merged only by name
	groups, err := t.treesByRepo(ctx, in.Members, true)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, g := range groups {
		if in.Repo != "" && g.Name != in.Repo {
			continue
		}
		l := askedLane{repo: g.Repo, into: in.Into}
		if l.into == "" {
			if l.into, err = g.Repo.MainBranch(ctx); err != nil {
				return nil, nil, notes, err
			}
			if l.into == "" {
				return nil, nil, notes, team.Errorf(team.CodeInvalid, "no branch is checked out in %s", g.Repo.Root()).WithReason(team.ReasonNoTarget).WithHint("name one: --into BRANCH")
			}
		}
		more, err := t.askedIn(ctx, in, g, &l)
		notes = append(notes, more...)
		unknown = append(unknown, l.unknown...)
		if err != nil {
			return nil, nil, notes, err
		}
		all = append(all, l.list...)
		if len(l.list) > 0 || len(groups) == 1 {
			lanes = append(lanes, l)
		}
	}
	if len(unknown) > 0 {
		what := "it is not known whether " + strings.Join(unknown, ", ") + " work"
		name := "teamctl merge " + strings.Join(unknown, " ")
		if len(all) == 0 {
			return nil, nil, notes, team.Errorf(team.CodeConflict, "%s: name those to merge", what).WithReason(team.ReasonReadinessUnknown).WithHint(name)
		}
		notes = append(notes, what+": "+name)
	}
	return all, lanes, notes, nil
}

// askedIn fills the lane of one repository.
func (t *Team) askedIn(ctx context.Context, in MergeIn, g repoTrees, l *askedLane) (notes []string, err error) {
	views, err := g.Repo.Look(ctx, worktree.LookIn{Paths: g.paths(), Target: l.into})
	if err != nil {
		return nil, err
	}
	held, err := t.holders(ctx)
	if err != nil {
		return nil, err
	}
	into := l.into
	for i, m := range g.Members {
		v := views[i]
		why := notReady(m, v, held)
		if why == unknownActivity && in.Ready {
			l.unknown = append(l.unknown, m.Name)
			continue
		}
		if in.Ready && why != "" {
			notes = append(notes, m.Name+" is not ready: "+why)
			continue
		}
		if v.Err != nil {
			return notes, v.Err
		}
		if v.Branch == "" || v.Head == "" {
			return notes, team.Errorf(team.CodeConflict, "%s is on no branch in %s", m.Name, m.Worktree).WithReason(team.ReasonDetached).
				WithHint("git -C " + team.ShellQuote(m.Worktree) + " switch -c teamctl-" + m.Name)
		}
		if v.Branch == into {
			return notes, team.Errorf(team.CodeInvalid, "%s works on %s itself", m.Name, into).WithReason(team.ReasonNoTarget)
		}
		if !v.Clean() {
			notes = append(notes, m.Name+" has work that is not committed; only its commits are merged")
		}
		l.list = append(l.list, ledger.Merge{Member: m.Name, Session: m.SessionKey, Branch: v.Branch, Tip: v.Head, Target: into,
			Strategy: in.Strategy, Gates: append([]string{}, in.Gates...),
			Options: ledger.MergeOptions{Repo: g.Name, UpdateCheckout: !in.KeepCheckout, GateTimeout: in.GateTimeout}})
	}
	return notes, nil
}

// holders returns the sessions with a task in progress.
func (t *Team) holders(ctx context.Context) (map[string]bool, error) {
	open, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{OpenOnly: true})
	if err != nil {
		return nil, err
	}
	held := map[string]bool{}
	for _, k := range open {
		if k.Status == team.TaskClaimed || k.Status == team.TaskInProgress {
			held[k.Owner] = true
		}
	}
	return held, nil
}

// unknownActivity is the reason not to merge a branch, unless named, whose member may be working.
const unknownActivity = "it is not known whether it is idle"

// notReady returns why a branch is not merged unless named, or "".
func notReady(m ledger.Member, v team.WorktreeView, held map[string]bool) string {
	switch {
	case v.Err != nil:
		return v.Problem
	case v.Branch == "":
		return "it is on no branch"
	case held[m.SessionKey]:
		return "it has a task in work"
	case v.Clean() && v.ToTarget == 0:
		return "it has nothing to merge"
	case !resting(m) && m.Activity != team.ActivityUnknown:
		return "it is " + string(m.Activity)
	case !v.Clean():
		return "it has work that is not committed"
	case v.ToTarget == 0:
		return "it has nothing to merge"
	case !resting(m):
		return unknownActivity
	}
	return ""
}

// resting reports whether a member is not running, or known to be idle. Unknown is never idle.
func resting(m ledger.Member) bool { return !m.Observed.Alive() || m.Activity == team.Idle }

func laneItem(m ledger.Merge) team.LaneItem {
	return team.LaneItem{Key: m.ID, Name: m.Member, Branch: m.Branch, Tip: m.Tip}
}

// planMerge returns what a merge would do. It writes only objects that git discards later, and
// runs no gate.
func (t *Team) planMerge(ctx context.Context, in MergeIn, l askedLane) ([]ledger.Merge, error) {
	asked := l.list
	if len(asked) == 0 {
		return nil, nil
	}
	lane := t.lane(l.into, in.Strategy, in.Gates, asked[0].Options)
	lane.DryRun = true
	for i := range asked {
		asked[i].ID = int64(i + 1)
		lane.Items = append(lane.Items, laneItem(asked[i]))
	}
	lane.Note = func(_ context.Context, n team.LaneNote) error {
		for _, it := range n.Items {
			m := &asked[it.Key-1]
			m.State, m.Files, m.Old, m.New = ledger.MergeState(n.State), n.Files, n.Old, n.New
		}
		return nil
	}
	err := l.repo.RunLane(ctx, lane)
	for i := range asked {
		asked[i].ID = 0
	}
	return asked, err
}

package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// MergeIn asks for branches of members to be merged.
type MergeIn struct {
	Members        []string      `json:"members,omitempty"`
	Ready          bool          `json:"ready,omitempty"`    // everybody who is idle, clean and has something to merge
	Resume         bool          `json:"resume,omitempty"`   // only what is in the queue already
	Repo           string        `json:"repo,omitempty"`     // with Ready: of this repository only
	Into           string        `json:"into,omitempty"`     // default: the branch checked out in each repository
	Strategy       string        `json:"strategy,omitempty"` // merge (default), rebase, squash
	Gates          []string      `json:"gates,omitempty"`    // commands that must pass
	GateTimeout    time.Duration `json:"gate_timeout,omitempty"`
	DryRun         bool          `json:"dry_run,omitempty"`
	Refresh        bool          `json:"refresh,omitempty"`         // rebase the other worktrees that are clean and idle
	UpdateCheckout bool          `json:"update_checkout,omitempty"` // fast-forward a clean checkout of the target
	// Each is called with every step, from one goroutine; Waits once before it is
	// another's turn first.
	Each  func(worktree.LaneNote) `json:"-"`
	Waits func()                  `json:"-"`
}

// MergeOut is what became of them.
type MergeOut struct {
	Into      string            `json:"into"` // "" where it is not the same for all
	DryRun    bool              `json:"dryRun,omitempty"`
	Merges    []ledger.Merge    `json:"merges"`
	Refreshed []RefreshedMember `json:"refreshed,omitempty"`
	Notes     []string          `json:"notes,omitempty"`
}

// RefreshedMember is a worktree that was, or was not, brought up to the target.
type RefreshedMember struct {
	Member string `json:"member"`
	Into   string `json:"into"`
	Done   bool   `json:"done"`
	Why    string `json:"why,omitempty"` // why not
}

// gateTimeout bounds a gate that nobody set a limit for.
const gateTimeout = 30 * time.Minute

// Merge brings branches of members into a branch, one lane at a time for the
// team. What was asked for is in the queue before anything is done, so a merge that
// was killed is taken up by the next one. Its error is one that stopped the lane; a
// conflict or a red gate is told in the result, with the task of the owner.
func (t *Team) Merge(ctx context.Context, c Caller, in MergeIn) (MergeOut, error) {
	out := MergeOut{Into: in.Into, DryRun: in.DryRun, Merges: []ledger.Merge{}}
	if err := t.may(ctx, c, OpWorktrees); err != nil {
		return out, err
	}
	if in.Strategy == "" {
		in.Strategy = worktree.StrategyMerge
	}
	switch in.Strategy {
	case worktree.StrategyMerge, worktree.StrategyRebase, worktree.StrategySquash:
	default:
		return out, team.Errorf(team.CodeInvalid, "unknown merge strategy %q", in.Strategy).WithHint("merge, rebase or squash")
	}
	if in.GateTimeout <= 0 {
		in.GateTimeout = gateTimeout
	}
	asked, lanes, notes, err := t.candidates(ctx, in)
	out.Notes = notes
	out.Into = commonTarget(lanes)
	if err != nil || len(asked) == 0 && !in.Resume {
		return out, err
	}
	if in.DryRun {
		for _, l := range lanes {
			plan, err := t.planMerge(ctx, in, l)
			out.Merges = append(out.Merges, plan...)
			if err != nil {
				return out, err
			}
		}
		return out, nil
	}
	led := t.as(c)
	if len(asked) > 0 {
		for _, l := range lanes {
			if err := l.repo.MayMove(ctx, l.into, in.UpdateCheckout); err != nil {
				return out, err
			}
		}
		if asked, err = led.EnqueueMerges(ctx, asked); err != nil {
			return out, err
		}
		if err := t.saveBefore(ctx, asked, "before a merge"); err != nil {
			return out, err
		}
	}
	if busy, err := t.Merging(); err == nil && busy && in.Waits != nil {
		in.Waits()
	}
	lock, err := filelock.Lock(ctx, t.mergeLock())
	if err != nil {
		return out, team.Errorf(team.CodeTimeout, "another merge of team %s is under way: %w", t.Layout.Key, err).WithHint("teamctl merge queue")
	}
	defer func() { _ = lock.Unlock() }()
	done, err := t.drain(ctx, led, in.Each)
	if err == nil {
		err = t.sweepScratch(ctx)
	}
	byID := map[int64]ledger.Merge{}
	for _, m := range done {
		byID[m.ID] = m
	}
	if len(asked) > 0 { // another run may have done ours while we waited
		all, e := t.Ledger.Merges(ctx, true, 0)
		if err == nil {
			err = e
		}
		for _, m := range all {
			if slices.ContainsFunc(asked, func(a ledger.Merge) bool { return a.ID == m.ID }) {
				byID[m.ID] = m
			}
		}
	}
	for _, m := range byID {
		out.Merges = append(out.Merges, m)
	}
	slices.SortFunc(out.Merges, func(a, b ledger.Merge) int { return int(a.ID - b.ID) })
	if err != nil {
		return out, err
	}
	moved := map[[2]string]bool{}
	for _, m := range out.Merges {
		at := [2]string{m.Options.Repo, m.Target}
		if m.State != ledger.MergeLanded || moved[at] {
			continue
		}
		moved[at] = true
		told, err := t.afterMerge(ctx, c, led, m.Options.Repo, m.Target, in.Refresh)
		out.Refreshed = append(out.Refreshed, told...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// askedLane is what is asked for in one repository.
type askedLane struct {
	repo *worktree.Repo
	into string
	list []ledger.Merge
}

// commonTarget is where all go, or "".
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

// saveBefore takes a checkpoint of the worktrees whose branches are about to be
// merged. One that cannot be taken keeps nothing from being merged: nothing is
// changed there.
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

// candidates are the merges that were asked for, in the order of the names, or of
// joining, and the lanes that they make.
func (t *Team) candidates(ctx context.Context, in MergeIn) (all []ledger.Merge, lanes []askedLane, notes []string, err error) {
	if in.Resume {
		if in.Ready || len(in.Members) > 0 {
			return nil, nil, nil, team.Errorf(team.CodeInvalid, "what is resumed stands in the queue: name nobody")
		}
		return nil, nil, nil, nil
	}
	if in.Ready == (len(in.Members) > 0) {
		return nil, nil, nil, team.Errorf(team.CodeInvalid, "name the members whose branches are to be merged, or ask for all that are ready").
			WithReason("usage").WithHint("teamctl merge MEMBER..., or teamctl merge --ready")
	}
	if in.Repo != "" {
		if _, err := t.repo(ctx, in.Repo); err != nil {
			return nil, nil, nil, err
		}
	}
	groups, err := t.treesByRepo(ctx, in.Members)
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
				return nil, nil, notes, team.Errorf(team.CodeInvalid, "no branch is checked out in %s", g.Repo.Root()).WithReason("no_target").WithHint("name one: --into BRANCH")
			}
		}
		more, err := t.askedIn(ctx, in, g, &l)
		notes = append(notes, more...)
		if err != nil {
			return nil, nil, notes, err
		}
		all = append(all, l.list...)
		if len(l.list) > 0 || len(groups) == 1 {
			lanes = append(lanes, l)
		}
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
		if in.Ready && why != "" {
			notes = append(notes, m.Name+" is not ready: "+why)
			continue
		}
		if v.Err != nil {
			return notes, v.Err
		}
		if v.Branch == "" || v.Head == "" {
			return notes, team.Errorf(team.CodeConflict, "%s is on no branch in %s", m.Name, m.Worktree).WithReason("detached").
				WithHint("git -C " + m.Worktree + " switch -c NAME")
		}
		if v.Branch == into {
			return notes, team.Errorf(team.CodeInvalid, "%s works on %s itself", m.Name, into).WithReason("no_target")
		}
		if !v.Clean() {
			notes = append(notes, m.Name+" has work that is not committed; only its commits are merged")
		}
		l.list = append(l.list, ledger.Merge{Member: m.Name, Session: m.SessionKey, Branch: v.Branch, Tip: v.Head, Target: into,
			Strategy: in.Strategy, Gates: append([]string{}, in.Gates...),
			Options: ledger.MergeOptions{Repo: g.Name, UpdateCheckout: in.UpdateCheckout, GateTimeout: in.GateTimeout}})
	}
	return notes, nil
}

// holders are the sessions that have a task in work.
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

// notReady says why a branch is not to be merged unasked, or "".
func notReady(m ledger.Member, v worktree.View, held map[string]bool) string {
	switch {
	case v.Err != nil:
		return v.Problem
	case v.Branch == "":
		return "it is on no branch"
	case held[m.SessionKey]:
		return "it has a task in work"
	case !resting(m):
		return "it is " + string(m.Activity)
	case !v.Clean():
		return "it has work that is not committed"
	case v.ToTarget == 0:
		return "it has nothing to merge"
	}
	return ""
}

// resting: not running, or known to be idle. Unknown is never idle.
func resting(m ledger.Member) bool { return !m.Observed.Alive() || m.Activity == team.Idle }

func laneItem(m ledger.Merge) worktree.LaneItem {
	return worktree.LaneItem{Key: m.ID, Name: m.Member, Branch: m.Branch, Tip: m.Tip}
}

// planMerge says what a merge would do. Nothing is written but objects that git
// forgets again, and no gate runs.
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
	lane.Note = func(_ context.Context, n worktree.LaneNote) error {
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

func (t *Team) lane(into, strategy string, gates []string, o ledger.MergeOptions) worktree.LaneIn {
	dir := filepath.Join(t.Layout.Dir, "merge")
	return worktree.LaneIn{Target: into, Strategy: strategy, Gates: gates, GateLimit: o.GateTimeout,
		Scratch: t.scratch(o.Repo), Logs: filepath.Join(dir, "logs"), UpdateCheckout: o.UpdateCheckout,
		Env: []string{team.EnvTeam + "=" + t.Layout.Key}}
}

// drain does what is in the queue, oldest first, in lanes of what was asked for
// in the same way. The caller holds the lock of the lane, so what is under way
// there belongs to a run that was killed.
func (t *Team) drain(ctx context.Context, led *ledger.Ledger, each func(worktree.LaneNote)) (done []ledger.Merge, err error) {
	for {
		open, err := led.Merges(ctx, false, 0)
		if err != nil || len(open) == 0 {
			return done, err
		}
		first := open[0]
		r, err := t.repo(ctx, first.Options.Repo)
		if err != nil {
			lost := map[int64]ledger.Merge{} // not in the way of those of other repositories
			for _, m := range open {
				if m.Options.Repo == first.Options.Repo {
					lost[m.ID] = m
				}
			}
			return t.stopped(ctx, led, lost, done, err)
		}
		lane := t.lane(first.Target, first.Strategy, first.Gates, first.Options)
		rows := map[int64]ledger.Merge{}
		for _, m := range open {
			if m.Target != first.Target || m.Strategy != first.Strategy || !slices.Equal(m.Gates, first.Gates) || m.Options != first.Options {
				continue
			}
			if m.State == ledger.MergeLanding {
				settled, err := t.settleLanding(ctx, led, r, m)
				if err != nil {
					return done, err
				}
				if settled != nil {
					done = append(done, *settled)
					continue
				}
			}
			rows[m.ID] = m
			lane.Items = append(lane.Items, laneItem(m))
		}
		if len(lane.Items) == 0 {
			continue
		}
		lane.Note = func(ctx context.Context, n worktree.LaneNote) error {
			p, err := t.patchOf(ctx, n, rows)
			if err != nil {
				return err
			}
			moved, err := led.MoveMerges(ctx, p)
			for _, m := range moved {
				if m.State != p.State { // taken back, or asked for anew, since the queue was read
					err = errors.Join(err, errQueueChanged)
				}
				if !m.State.Open() && m.State != ledger.MergeCanceled {
					done = append(done, m)
				}
			}
			if err == nil && each != nil {
				each(n)
			}
			return err
		}
		err = r.RunLane(ctx, lane)
		if errors.Is(err, errQueueChanged) {
			continue
		}
		if err != nil {
			return t.stopped(ctx, led, rows, done, err)
		}
	}
}

// errQueueChanged: what the lane was given is not what is asked for any more.
var errQueueChanged = errors.New("the queue has changed")

// scratch is where the lanes of a repository have their scratch worktrees.
func (t *Team) scratch(repo string) string {
	return filepath.Join(t.Layout.Dir, "merge", "scratch", repo)
}

// sweepScratch removes what lanes left that were killed when all was done but
// that. The caller holds the lock of the lane.
func (t *Team) sweepScratch(ctx context.Context) error {
	more, err := supervisor.RepositoriesOf(ctx, t.Ledger)
	if err != nil {
		return err
	}
	for _, name := range append(more.Names(), "") {
		left, err := filepath.Glob(filepath.Join(t.scratch(name), "lane-*"))
		if err != nil || len(left) == 0 {
			continue // the pattern is a good one
		}
		r, err := t.repo(ctx, name)
		if err != nil {
			return err
		}
		r.SweepScratch(ctx, t.scratch(name))
	}
	return nil
}

// settleLanding finds out what became of a merge that was killed while the target
// moved: nil when it has to be done again.
func (t *Team) settleLanding(ctx context.Context, led *ledger.Ledger, r *worktree.Repo, m ledger.Merge) (*ledger.Merge, error) {
	in, err := r.IsAncestor(ctx, m.New, "refs/heads/"+m.Target)
	if err != nil || !in {
		return nil, err
	}
	moved, err := led.MoveMerges(ctx, ledger.MergePatch{IDs: []int64{m.ID}, State: ledger.MergeLanded, Old: m.Old, New: m.New})
	if err != nil {
		return nil, err
	}
	return &moved[0], nil
}

// stopped ends the merges of a lane that cannot go on. What may go by itself, such
// as a full disk or the end of ctx, leaves them in the queue for the next run.
func (t *Team) stopped(ctx context.Context, led *ledger.Ledger, rows map[int64]ledger.Merge, done []ledger.Merge, cause error) ([]ledger.Merge, error) {
	switch team.CodeOf(cause) {
	case team.CodeConflict, team.CodeInvalid, team.CodeNotFound, team.CodeDenied:
	default:
		return done, cause
	}
	for _, m := range done {
		delete(rows, m.ID)
	}
	p := ledger.MergePatch{State: ledger.MergeFailed, Why: cause.Error()}
	for id := range rows {
		p.IDs = append(p.IDs, id)
	}
	slices.Sort(p.IDs)
	moved, err := led.MoveMerges(ctx, p)
	if err != nil {
		return done, errors.Join(cause, err)
	}
	return append(done, moved...), cause
}

// patchOf is what the ledger keeps of a note, with the task of the owner.
func (t *Team) patchOf(ctx context.Context, n worktree.LaneNote, rows map[int64]ledger.Merge) (ledger.MergePatch, error) {
	p := ledger.MergePatch{Old: n.Old, New: n.New, Files: n.Files, Log: n.Log}
	for _, it := range n.Items {
		p.IDs, p.Tips = append(p.IDs, it.Key), append(p.Tips, it.Tip)
	}
	switch n.State {
	case worktree.LaneGating:
		p.State = ledger.MergeGating
	case worktree.LaneLanding:
		p.State = ledger.MergeLanding
	case worktree.LaneLanded:
		p.State = ledger.MergeLanded
	case worktree.LaneContained:
		p.State = ledger.MergeContained
	case worktree.LaneConflict:
		p.State, p.Why = ledger.MergeConflict, "conflicts in "+supervisor.FileList(n.Files)
	case worktree.LaneRed:
		p.State, p.Why = ledger.MergeRed, fmt.Sprintf("%q: %s", n.Ran.Run, n.Ran.Why())
	}
	if p.State != ledger.MergeConflict && p.State != ledger.MergeRed {
		return p, nil
	}
	m := rows[n.Items[0].Key]
	owner, err := t.fixer(ctx, m.Session)
	if err != nil {
		return p, err
	}
	p.TaskOwner = owner
	p.Task = mergeTask(m, n)
	return p, nil
}

// fixer is who can do something about a branch: its owner, or the lead where the
// owner is a built-in worker, which only runs commands.
func (t *Team) fixer(ctx context.Context, session string) (string, error) {
	m, err := t.Ledger.MemberBySession(ctx, session)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return "", err
	}
	if err == nil && m.RemovedAt == 0 && m.Spec.Agent != "worker" {
		return session, nil
	}
	row, err := t.Ledger.Team(ctx)
	return row.LeadSession, err
}

func mergeTask(m ledger.Merge, n worktree.LaneNote) *ledger.NewTask {
	var b strings.Builder
	subject := ""
	if n.State == worktree.LaneConflict {
		subject = fmt.Sprintf("resolve the conflicts of %s with %s", m.Branch, m.Target)
		fmt.Fprintf(&b, "Merging %s (%.12s, the work of %s) into %s (%.12s) conflicts in:\n", m.Branch, m.Tip, m.Member, m.Target, n.Onto)
		for _, f := range n.Files[:min(len(n.Files), 100)] {
			fmt.Fprintf(&b, "  %s\n", f)
		}
		fmt.Fprintf(&b, "\nIn the worktree of %s: git merge %s, resolve the files, test, commit. Then the branch can be merged again: teamctl merge %s --into %s\n",
			m.Member, m.Target, m.Member, m.Target)
	} else {
		subject = fmt.Sprintf("mend %s: %s fails", m.Branch, n.Ran.Run)
		fmt.Fprintf(&b, "%s (%.12s, the work of %s) on top of %s does not pass: %s: %s.\nThe whole output is in %s. Its end:\n\n%s\n\n",
			m.Branch, m.Tip, m.Member, m.Target, n.Ran.Run, n.Ran.Why(), n.Log, n.Ran.Tail)
		fmt.Fprintf(&b, "Mend it in the worktree of %s, commit, and the branch can be merged again: teamctl merge %s --into %s\n", m.Member, m.Member, m.Target)
	}
	meta, err := json.Marshal(map[string]any{"merge": map[string]any{
		"id": m.ID, "state": n.State, "branch": m.Branch, "target": m.Target, "files": n.Files, "log": n.Log,
	}})
	if err != nil {
		meta = nil // strings only: cannot be
	}
	return &ledger.NewTask{Subject: strings.Join(strings.Fields(subject), " "), Description: b.String(), Metadata: meta, Priority: 1}
}

// afterMerge brings the worktrees that are clean and idle up to the target where
// that was asked for, and tells the others that it has moved on.
func (t *Team) afterMerge(ctx context.Context, c Caller, led *ledger.Ledger, repo, into string, refresh bool) ([]RefreshedMember, error) {
	r, err := t.repo(ctx, repo)
	if err != nil {
		return nil, err
	}
	head, err := r.Resolve(ctx, "refs/heads/"+into)
	if err != nil {
		return nil, err
	}
	ms, err := t.treeMembers(ctx, nil)
	if err != nil {
		return nil, err
	}
	held, err := t.holders(ctx)
	if err != nil {
		return nil, err
	}
	var out []RefreshedMember
	for _, m := range ms {
		if m.Spec.Repo != repo {
			continue
		}
		in, err := r.IsAncestor(ctx, head, "refs/heads/"+m.Branch)
		if err != nil {
			out = append(out, RefreshedMember{Member: m.Name, Into: into, Why: err.Error()})
			continue
		}
		if in {
			continue
		}
		why := "nobody asked to"
		if refresh {
			why = t.refresh(ctx, led, r, m, head, held)
		}
		out = append(out, RefreshedMember{Member: m.Name, Into: into, Done: why == "", Why: why})
		if why == "" || !m.Observed.Alive() {
			continue
		}
		_, err = t.Post(ctx, ledger.NewMessage{Kind: team.KindInfo, From: c.Name, To: m.Name,
			Text:    fmt.Sprintf("%s has moved on to %.12s: branches of the team were merged into it. Bring it into your branch when it suits you: git merge %s", into, head, into),
			Summary: into + " has moved on", IdemKey: "moved:" + into + ":" + head + ":" + m.Name})
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// refresh rebases one worktree and says why not, or "".
func (t *Team) refresh(ctx context.Context, led *ledger.Ledger, r *worktree.Repo, m ledger.Member, head string, held map[string]bool) string {
	now, err := t.Ledger.MemberBySession(ctx, m.SessionKey)
	switch {
	case err != nil:
		return err.Error()
	case held[m.SessionKey]:
		return "it has a task in work"
	case !resting(now):
		return "it is " + string(now.Activity)
	}
	if _, _, err := t.saver().Save(ctx, r, now, "before a refresh"); err != nil {
		return err.Error()
	}
	if _, err := r.Refresh(ctx, m.Worktree, head); err != nil {
		return err.Error()
	}
	if _, err := led.UpdateMember(ctx, ledger.MemberPatch{SessionKey: m.SessionKey, Base: &head}); err != nil {
		return err.Error()
	}
	return ""
}

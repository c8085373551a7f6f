package tool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// MergeIn requests merges of members' branches.
type MergeIn struct {
	Members      []string      `json:"members,omitempty"`
	Ready        bool          `json:"ready,omitempty"`    // all members that are idle, clean and have something to merge
	Resume       bool          `json:"resume,omitempty"`   // only entries that are already queued
	Repo         string        `json:"repo,omitempty"`     // with Ready: of this repository only
	Into         string        `json:"into,omitempty"`     // default: the branch checked out in each repository
	Strategy     string        `json:"strategy,omitempty"` // merge (default), rebase, squash
	Gates        []string      `json:"gates,omitempty"`    // commands that must pass
	GateTimeout  time.Duration `json:"gate_timeout,omitempty"`
	DryRun       bool          `json:"dry_run,omitempty"`
	Refresh      bool          `json:"refresh,omitempty"`       // rebase the other worktrees that are clean and idle
	KeepCheckout bool          `json:"keep_checkout,omitempty"` // refuse a checked-out target, instead of fast-forwarding a clean checkout
	// Each is called with every step, from one goroutine; Waits once before waiting for another
	// merge to finish.
	Each  func(team.LaneNote) `json:"-"`
	Waits func()              `json:"-"`
}

// MergeOut is the result of the merges.
type MergeOut struct {
	Into      string            `json:"into"` // "" if it differs between them
	DryRun    bool              `json:"dryRun,omitempty"`
	Merges    []ledger.Merge    `json:"merges"`
	Refreshed []RefreshedMember `json:"refreshed,omitempty"`
	Notes     []string          `json:"notes,omitempty"`
}

// RefreshedMember is a worktree that was to be rebased on the target.
type RefreshedMember struct {
	Member string `json:"member"`
	Into   string `json:"into"`
	Done   bool   `json:"done"`
	Why    string `json:"why,omitempty"` // why it was not
}

// gateTimeout is the default limit of a gate.
const gateTimeout = 30 * time.Minute

// Merge merges branches of members into a branch, in one lane at a time for the team. All
// requested merges are queued first, so that the next merge resumes a killed one. The error is one
// that stopped the lane; the result reports a conflict or a failed gate, with the task for the
// owner.
func (t *Team) Merge(ctx context.Context, c Caller, in MergeIn) (out MergeOut, err error) {
	out = MergeOut{Into: in.Into, DryRun: in.DryRun, Merges: []ledger.Merge{}}
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
	defer func() { out.Notes = append(out.Notes, t.sweepScratch(ctx)...) }() // also if there is nothing to merge, or on failure
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
			if err := l.repo.MayMove(ctx, l.into, !in.KeepCheckout); err != nil {
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
		return out, team.Errorf(team.CodeTimeout, "another merge of team %s is running: %w", t.Layout.Key, err).WithHint("teamctl merge queue")
	}
	defer func() { _ = lock.Unlock() }()
	done, err := t.drain(ctx, led, in.Each)
	byID := map[int64]ledger.Merge{}
	for _, m := range done {
		byID[m.ID] = m
	}
	if len(asked) > 0 { // another run may have merged ours meanwhile
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
	// What has landed moves its target also if another merge has failed, or the run was interrupted.
	moved := map[[2]string]bool{}
	for _, m := range out.Merges {
		at := [2]string{m.Options.Repo, m.Target}
		if m.State != ledger.MergeLanded || moved[at] {
			continue
		}
		moved[at] = true
		told, aerr := t.afterMerge(ctx, c, led, m.Options.Repo, m.Target, in.Refresh)
		if ctx.Err() != nil {
			told, aerr = t.afterMerge(context.WithoutCancel(ctx), c, led, m.Options.Repo, m.Target, false)
		}
		out.Refreshed = append(out.Refreshed, told...)
		err = errors.Join(err, aerr)
	}
	return out, err
}

func (t *Team) lane(into, strategy string, gates []string, o ledger.MergeOptions) worktree.LaneIn {
	dir := filepath.Join(t.Layout.Dir, "merge")
	return worktree.LaneIn{Target: into, Strategy: strategy, Gates: gates, GateLimit: o.GateTimeout,
		Scratch: t.scratch(o.Repo), Book: run.BookOf(t.Layout), Logs: filepath.Join(dir, "logs"), UpdateCheckout: o.UpdateCheckout,
		Env: []string{team.EnvTeam + "=" + t.Layout.Key}}
}

// drain processes the queue, oldest first, in lanes of merges with the same options. The caller
// holds the lock of the lane, so a merge in progress there belongs to a killed run.
func (t *Team) drain(ctx context.Context, led *ledger.Ledger, each func(team.LaneNote)) (done []ledger.Merge, err error) {
	for {
		open, err := led.Merges(ctx, false, 0)
		if err != nil || len(open) == 0 {
			return done, err
		}
		first := open[0]
		r, err := t.repo(ctx, first.Options.Repo)
		if err != nil {
			lost := map[int64]ledger.Merge{} // does not block those of other repositories
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
		lane.Note = func(ctx context.Context, n team.LaneNote) error {
			p, err := t.patchOf(ctx, n, rows)
			if err != nil {
				return err
			}
			moved, err := led.MoveMerges(ctx, p)
			for _, m := range moved {
				if m.State != p.State { // cancelled, or requested again, since the queue was read
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

// errQueueChanged reports that the queue no longer matches the lane.
var errQueueChanged = errors.New("the queue has changed")

// settleLanding determines the outcome of a merge that was killed while it moved the target: nil
// if it must be repeated.
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

// stopped ends the merges of a lane that cannot continue. After a cause that may be temporary,
// such as a full disk or the end of ctx, they stay queued for the next run.
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

// patchOf converts a note for the ledger, with the task for the owner.
func (t *Team) patchOf(ctx context.Context, n team.LaneNote, rows map[int64]ledger.Merge) (ledger.MergePatch, error) {
	p := ledger.MergePatch{Old: n.Old, New: n.New, Files: n.Files, Log: n.Log}
	for _, it := range n.Items {
		p.IDs, p.Tips = append(p.IDs, it.Key), append(p.Tips, it.Tip)
	}
	switch n.State {
	case team.LaneGating:
		p.State = ledger.MergeGating
	case team.LaneLanding:
		p.State = ledger.MergeLanding
	case team.LaneLanded:
		p.State = ledger.MergeLanded
	case team.LaneContained:
		p.State = ledger.MergeContained
	case team.LaneConflict:
		p.State, p.Why = ledger.MergeConflict, "conflicts in "+services.FileList(n.Files)
	case team.LaneRed:
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

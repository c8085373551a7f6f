package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

// Strategies of a merge lane.
const (
	StrategyMerge  = "merge"  // one merge commit per branch
	StrategyRebase = "rebase" // the branch's commits on top of the target
	StrategySquash = "squash" // one commit per branch
)

// LaneIn describes one run of a merge lane.
//
// The lane stacks the branches on the target in order, without a checkout where
// git can (2.38), otherwise in a scratch worktree. A branch that conflicts with
// the target itself has failed; a branch that conflicts with others of the
// stack waits for them. The gates run on the whole stack, checked out in the
// scratch worktree. If they pass, the target moves there by compare-and-swap;
// if they fail, the lane halves the stack until the failing branch is alone.
// Branches never change, and the user's checkout changes only by a fast-forward
// on request.
type LaneIn struct {
	Target         string // short name of a branch
	Strategy       string
	Items          []team.LaneItem
	Gates          []string
	GateLimit      time.Duration
	Env            []string // for gates
	Scratch        string   // directory for scratch worktrees, used for nothing else
	Book           run.Book // where running gates are recorded
	Logs           string   // directory for the output of gates
	UpdateCheckout bool     // fast-forward a clean checkout of the target
	DryRun         bool     // report what would be done; run no gate and move nothing
	// Note is called before and after every step that a later run must know
	// about. Its error ends the run.
	Note func(context.Context, team.LaneNote) error `json:"-"`
}

// lane is the state of one run.
type lane struct {
	r       *Repo
	in      LaneIn
	env     []string // identity
	scratch *tree
	scope   *run.Scope       // of the gates and of what git does in the scratch worktree
	gated   map[string]gated // by tree
	moves   int
	plan    string // dry run: the commit the target would have
}

type gated struct {
	ran team.Ran
	log string
}

// maxMoves is how often other processes may move the target during one run.
const maxMoves = 10

// RunLane merges branches into a target. When it returns, every item has a
// final note (landed, contained, conflict, red), or there is an error and the
// rest is untouched. After a kill the same items can be passed again: branches
// that have landed are noted as contained.
func (r *Repo) RunLane(ctx context.Context, in LaneIn) (err error) {
	switch in.Strategy {
	case StrategyMerge, StrategyRebase, StrategySquash:
	default:
		return invalid(team.ReasonBadInput, "unknown merge strategy %q", in.Strategy).WithHint("merge, rebase or squash")
	}
	if err := checkBranch(in.Target); err != nil || in.Target == "" {
		return invalid(team.ReasonBadBranch, "invalid target branch %q", in.Target)
	}
	l := &lane{r: r, in: in, gated: map[string]gated{}}
	if l.plan, err = l.target(ctx); err != nil {
		return err
	}
	if err := r.resumeCheckout(ctx, in.Target); err != nil {
		return err
	}
	if !in.DryRun {
		if err := r.MayMove(ctx, in.Target, in.UpdateCheckout); err != nil {
			return err
		}
	}
	_, _ = r.SweepScratch(ctx, in.Scratch, in.Book) // errors are reported by the periodic sweep
	root := tree{path: r.root, at: r.root, dir: r.common, main: true}
	if l.env, err = root.author(ctx, nil, "", ""); err != nil {
		return err
	}
	defer l.dropScratch(ctx)
	rest := in.Items
	for len(rest) > 0 {
		if rest, err = l.try(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}

// target returns the commit of the target; in a dry run, the commit it would
// have.
func (l *lane) target(ctx context.Context) (string, error) {
	if l.in.DryRun && l.plan != "" {
		return l.plan, nil
	}
	return l.r.Resolve(ctx, "refs/heads/"+l.in.Target)
}

// try stacks a batch on the target and lands it, or the part that can land. It
// returns the items to try again on top of what has landed by then.
func (l *lane) try(ctx context.Context, batch []team.LaneItem) (again []team.LaneItem, err error) {
	base, err := l.target(ctx)
	if err != nil {
		return nil, err
	}
	tip, stacked, later, err := l.stack(ctx, base, batch)
	if err != nil || len(stacked) == 0 {
		return later, err
	}
	l.r.step("stacked")
	if l.in.DryRun {
		l.plan = tip
		return later, l.note(ctx, team.LaneNote{State: team.LaneLanded, Items: stacked, Old: base, New: tip})
	}
	g, err := l.gate(ctx, tip, stacked)
	if err != nil {
		return nil, err
	}
	if g.ran.OK() || g.ran.Run == "" {
		moved, err := l.land(ctx, stacked, base, tip)
		if err != nil {
			return nil, err
		}
		if !moved {
			if l.moves++; l.moves > maxMoves {
				return nil, conflict(team.ReasonTargetMoves, "%s keeps being moved by other processes", l.in.Target).WithHint("try again")
			}
			return append(stacked, later...), nil
		}
		return later, nil
	}
	if len(stacked) > 1 {
		half := len(stacked) / 2
		for _, part := range [][]team.LaneItem{stacked[:half], stacked[half:]} {
			rest, err := l.try(ctx, part)
			if err != nil {
				return nil, err
			}
			again = append(again, rest...)
		}
		return append(again, later...), nil
	}
	// One branch is left. Decide whether it is at fault or the target was
	// already red.
	before, err := l.gate(ctx, base, nil)
	if err != nil {
		return nil, err
	}
	if !before.ran.OK() {
		return nil, conflict(team.ReasonTargetRed, "%q fails on %s itself: %s", before.ran.Run, l.in.Target, before.ran.Why()).
			WithHint("fix it first; the output is in " + before.log)
	}
	return later, l.note(ctx, team.LaneNote{State: team.LaneRed, Items: stacked, Ran: g.ran, Log: g.log})
}

func (l *lane) note(ctx context.Context, n team.LaneNote) error {
	if err := l.in.Note(ctx, n); err != nil {
		return err
	}
	l.r.step("noted-" + string(n.State))
	return nil
}

// stack commits a batch on top of base. It notes items that conflict with base
// itself and items that base already contains; items that conflict with the
// stack are returned for later.
func (l *lane) stack(ctx context.Context, base string, batch []team.LaneItem) (tip string, stacked, later []team.LaneItem, err error) {
	tip = base
	for _, it := range batch {
		in, err := isAncestor(ctx, call{dir: l.r.root, read: true}, it.Tip, tip)
		if err != nil {
			return "", nil, nil, err
		}
		next, files := tip, []string(nil)
		if !in {
			if next, files, err = l.join(ctx, tip, it); err != nil {
				return "", nil, nil, err
			}
		}
		switch {
		case len(files) > 0 && tip == base:
			if err := l.note(ctx, team.LaneNote{State: team.LaneConflict, Items: []team.LaneItem{it}, Onto: base, Files: files}); err != nil {
				return "", nil, nil, err
			}
		case len(files) > 0:
			later = append(later, it)
		case next == tip:
			if tip != base {
				// Contained in another branch of the stack, and lands with it.
				later = append(later, it)
				continue
			}
			if err := l.note(ctx, team.LaneNote{State: team.LaneContained, Items: []team.LaneItem{it}}); err != nil {
				return "", nil, nil, err
			}
		default:
			tip, stacked = next, append(stacked, it)
		}
	}
	return tip, stacked, later, nil
}

// gate runs the gates on a commit, once per tree.
func (l *lane) gate(ctx context.Context, commit string, items []team.LaneItem) (gated, error) {
	if len(l.in.Gates) == 0 {
		return gated{}, nil
	}
	out, err := l.r.read(ctx, "rev-parse", commit+"^{tree}")
	if err != nil {
		return gated{}, failed("read "+commit, err)
	}
	key := oneLine(out)
	if g, ok := l.gated[key]; ok {
		return g, nil
	}
	g := gated{log: filepath.Join(l.in.Logs, time.Now().UTC().Format("20060102T150405.000")+"-"+short(commit)+".log")}
	if len(items) > 0 {
		if err := l.note(ctx, team.LaneNote{State: team.LaneGating, Items: items, Log: g.log}); err != nil {
			return gated{}, err
		}
	}
	dropLogs(l.in.Logs, logsKept)
	t, err := l.checkout(ctx, commit)
	if err != nil {
		return gated{}, err
	}
	for _, command := range l.in.Gates {
		g.ran, err = RunCommand(ctx, Command{Run: command, Dir: t.path, Limit: l.in.GateLimit, Log: g.log, Scope: l.scope,
			Env: append([]string{"TEAMCTL_GATE=1", "TEAMCTL_TARGET=" + l.in.Target}, l.in.Env...)})
		if err != nil {
			return gated{}, err
		}
		if !g.ran.OK() {
			break
		}
	}
	l.gated[key] = g
	l.r.step("gated")
	return g, nil
}

// logsKept is how many logs of gates there are before the next one.
const logsKept = 200

// dropLogs removes the oldest logs of gates but keep, by their last write.
func dropLogs(dir string, keep int) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= keep {
		return
	}
	written := map[string]time.Time{}
	for _, e := range entries {
		if fi, err := e.Info(); err == nil {
			written[e.Name()] = fi.ModTime()
		}
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return written[b.Name()].Compare(written[a.Name()]) })
	for _, e := range entries[keep:] {
		_ = os.Remove(filepath.Join(dir, e.Name())) // the next gate tries again
	}
}

// checkout checks out a commit in the scratch worktree and removes everything
// else except ignored files: those make the second run of a gate faster.
func (l *lane) checkout(ctx context.Context, commit string) (tree, error) {
	if l.scratch == nil {
		if err := l.makeScratch(ctx, commit); err != nil {
			return tree{}, err
		}
	}
	t := *l.scratch
	for _, args := range [][]string{
		{"checkout", "--quiet", "--force", "--detach", commit},
		{"clean", "--quiet", "-d", "--force", "--force"},
	} {
		if _, err := git(ctx, t.call(args...)); err != nil {
			return tree{}, t.lockedOr("check out "+short(commit)+" in "+t.path, err)
		}
	}
	return t, nil
}

// message returns the subject of a commit that the lane makes.
func (l *lane) message(it team.LaneItem) string {
	return fmt.Sprintf("merge %s into %s", it.Branch, l.in.Target)
}

package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// WorktreesIn selects worktrees.
type WorktreesIn struct {
	Members []string `json:"members,omitempty"` // none: all that have a worktree of their own
	Into    string   `json:"into,omitempty"`    // branch to compare with; default: the one checked out in the repository
	Disk    bool     `json:"disk,omitempty"`
}

// WorktreeInfo is one member's worktree.
type WorktreeInfo struct {
	Member   string        `json:"member"`
	Repo     string        `json:"repo,omitempty"` // name of the repository; "" is the team's own
	Into     string        `json:"into,omitempty"` // branch that it was compared with
	Activity team.Activity `json:"activity"`
	Observed team.Observed `json:"observed"`
	Left     bool          `json:"left,omitempty"` // the member is no longer on the roster
	team.WorktreeView
	Shared []ledger.TouchedFile `json:"shared,omitempty"` // files that other members change as well
}

// WorktreesOut has the worktrees of a team.
type WorktreesOut struct {
	Into      string         `json:"into,omitempty"` // "" if it differs between them
	Worktrees []WorktreeInfo `json:"worktrees"`
}

// Worktrees inspects the worktrees of members. One that cannot be read has its error in its place.
func (t *Team) Worktrees(ctx context.Context, in WorktreesIn) (WorktreesOut, error) {
	out := WorktreesOut{Worktrees: []WorktreeInfo{}}
	groups, err := t.treesByRepo(ctx, in.Members, true)
	if err != nil {
		return out, err
	}
	shared, err := t.shared(ctx)
	if err != nil {
		return out, err
	}
	for n, g := range groups {
		into := in.Into
		if into == "" {
			if into, err = g.Repo.MainBranch(ctx); err != nil {
				return out, err
			}
		}
		if n == 0 {
			out.Into = into
		} else if out.Into != into {
			out.Into = ""
		}
		views, err := g.Repo.Look(ctx, worktree.LookIn{Paths: g.paths(), Target: into, Disk: in.Disk})
		if err != nil {
			return out, err
		}
		for i, m := range g.Members {
			out.Worktrees = append(out.Worktrees, WorktreeInfo{Member: m.Name, Repo: g.Name, Into: into, Activity: m.Activity, Observed: m.Observed,
				Left: m.RemovedAt != 0, WorktreeView: views[i], Shared: inItsRepo(m, shared)})
		}
	}
	return out, nil
}

// Shared returns the files that a member and others have changed, without a look at the worktree.
func (t *Team) Shared(ctx context.Context, m ledger.Member) ([]ledger.TouchedFile, error) {
	shared, err := t.shared(ctx)
	return inItsRepo(m, shared), err
}

// inItsRepo returns a member's files, with their paths in its repository.
func inItsRepo(m ledger.Member, shared map[string][]ledger.TouchedFile) []ledger.TouchedFile {
	list := shared[m.Name]
	for i := range list {
		list[i].Path = services.OutOfRepo(m.Spec.Repo, list[i].Path)
	}
	return list
}

// shared returns each member's files of which another member was warned.
func (t *Team) shared(ctx context.Context) (map[string][]ledger.TouchedFile, error) {
	all, err := t.Ledger.Touched(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string][]string{}
	for _, f := range all {
		by[f.Path] = append(by[f.Path], f.Name)
	}
	out := map[string][]ledger.TouchedFile{}
	for path, names := range by {
		for _, me := range names {
			for _, other := range names {
				if other != me {
					out[me] = append(out[me], ledger.TouchedFile{Name: other, Path: path})
				}
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b ledger.TouchedFile) int {
			return strings.Compare(a.Path+"\x00"+a.Name, b.Path+"\x00"+b.Name)
		})
	}
	return out, nil
}

// WorktreeDiff has the changes of one member.
type WorktreeDiff struct {
	Member    string   `json:"member"`
	Repo      string   `json:"repo,omitempty"`
	Branch    string   `json:"branch,omitempty"`
	Base      string   `json:"base,omitempty"`
	Task      string   `json:"task,omitempty"`  // the comparison is with its claim
	Round     int      `json:"round,omitempty"` // the comparison is with this round of comments
	Diff      string   `json:"diff"`
	Untracked []string `json:"untracked,omitempty"`
}

// Since is what the changes of a member are compared with.
type Since string

// Values of Since; "" is the commit that the branch began at.
const (
	SinceCommit Since = "commit" // its last one: uncommitted work
	SinceTask   Since = "task"   // the claim of its last task
	SinceReview Since = "review" // the last comments that the caller sent to it
)

// Sinces lists them.
func Sinces() []Since { return []Since{SinceCommit, SinceTask, SinceReview} }

// WorktreeDiffs is what members have changed since their branches began, commits
// and uncommitted work together.
func (t *Team) WorktreeDiffs(ctx context.Context, names []string, stat bool) ([]WorktreeDiff, error) {
	return t.WorktreeDiffsSince(ctx, Person(), names, stat, "")
}

// WorktreeDiffsSince is WorktreeDiffs since another state.
func (t *Team) WorktreeDiffsSince(ctx context.Context, c Caller, names []string, stat bool, since Since) ([]WorktreeDiff, error) {
	if since != "" && !slices.Contains(Sinces(), since) {
		return nil, team.Errorf(team.CodeInvalid, "changes are compared with commit, task or review, not with %q", since)
	}
	groups, err := t.treesByRepo(ctx, names, true)
	if err != nil {
		return nil, err
	}
	out := []WorktreeDiff{}
	for _, g := range groups {
		for _, m := range g.Members {
			d := WorktreeDiff{Member: m.Name, Repo: g.Name, Branch: m.Branch, Base: m.Base}
			if err := t.diffSince(ctx, c, g.Repo, m, stat, since, &d); err != nil {
				return nil, fmt.Errorf("worktree of %s: %w", m.Name, err)
			}
			out = append(out, d)
		}
	}
	return out, nil
}

func (t *Team) diffSince(ctx context.Context, c Caller, r *worktree.Repo, m ledger.Member, stat bool, since Since, d *WorktreeDiff) (err error) {
	from := ""
	switch since {
	case "":
	case SinceCommit:
		from = "HEAD"
	case SinceTask:
		tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{Owner: m.SessionKey, Newest: true, Limit: tasksLooked})
		if err != nil {
			return err
		}
		var at int64
		for _, x := range tasks {
			if x.ClaimedAt > at {
				at, d.Task = x.ClaimedAt, x.ID
			}
		}
		if at != 0 {
			if from, err = r.TipBefore(ctx, m.Worktree, time.UnixMilli(at)); err != nil {
				return err
			}
		}
	case SinceReview:
		last, err := t.lastReview(ctx, c, m)
		if err != nil {
			return err
		}
		if tip := last.Tip; tip != "" {
			// What the author saw may have files that git does not track: they are compared
			// with what would be saved of the worktree now.
			now, _, err := r.Checkpoint(ctx, m.Worktree, t.Layout.Key, m.Name, "look at the changes")
			if err != nil {
				return err
			}
			d.Base, d.Round = tip, last.Round
			d.Diff, err = r.DiffTo(ctx, m.Worktree, tip, now, stat)
			return err
		}
	}
	if from != "" {
		d.Base = from
	}
	d.Diff, d.Untracked, err = r.DiffFrom(ctx, m.Worktree, from, stat)
	return err
}

// BaseBranch returns the branch that has the commit at which a member's branch began: the target of the
// member's newest merge, or else the branch checked out in its repository; "" if neither has the commit.
func (t *Team) BaseBranch(ctx context.Context, m ledger.Member) (string, error) {
	if m.Base == "" {
		return "", nil
	}
	r, err := t.repo(ctx, m.Spec.Repo)
	if err != nil {
		return "", err
	}
	merges, err := t.Ledger.Merges(ctx, true, 0)
	if err != nil {
		return "", err
	}
	target, newest := "", int64(0)
	for _, x := range merges {
		if x.Session == m.SessionKey && x.ID > newest {
			target, newest = x.Target, x.ID
		}
	}
	main, err := r.MainBranch(ctx)
	if err != nil {
		return "", err
	}
	for _, branch := range slices.Compact([]string{target, main}) {
		if branch == "" {
			continue
		}
		// A branch that was deleted since is not the base.
		if has, err := r.IsAncestor(ctx, m.Base, "refs/heads/"+branch); err == nil && has {
			return branch, nil
		}
	}
	return "", ctx.Err()
}

// tasksLooked is how many of a member's newest tasks are looked at for the one it claimed last.
const tasksLooked = 50

// LeaseIn takes a lease of files. Member is for a person who takes one in somebody's name; an
// agent takes its own.
type LeaseIn struct {
	Glob   string        `json:"glob"`
	For    time.Duration `json:"for,omitempty"` // default one hour
	Why    string        `json:"why,omitempty"`
	Member string        `json:"member,omitempty"`
}

// LeaseTake takes an advisory lease of files. Conflicting holders are reported, and notified;
// access is not restricted.
func (t *Team) LeaseTake(ctx context.Context, c Caller, in LeaseIn) (ledger.TakenLease, error) {
	m, err := t.leaseHolder(ctx, c, in.Member)
	if err != nil {
		return ledger.TakenLease{}, err
	}
	if in.For == 0 {
		in.For = time.Hour
	}
	got, err := t.as(c).TakeFileLease(ctx, ledger.NewFileLease{Session: m.SessionKey, Glob: leaseGlob(m, in.Glob), Why: in.Why, For: in.For})
	if err != nil {
		return got, err
	}
	told := map[string]bool{}
	for _, other := range got.Conflicts {
		if told[other.Name] {
			continue
		}
		told[other.Name] = true
		text := fmt.Sprintf("%s has taken a lease of %q until %s; you hold one of %q.", m.Name, got.Lease.Glob,
			time.UnixMilli(got.Lease.Until).Format("15:04"), other.Glob)
		if in.Why != "" {
			text += " Why: " + in.Why
		}
		if _, err := t.Post(ctx, ledger.NewMessage{Kind: team.KindInfo, From: m.Name, To: other.Name, Text: text,
			Summary: m.Name + " has taken a lease of files that you hold too",
			IdemKey: fmt.Sprintf("lease:%d:%d:%s", got.Lease.ID, got.Lease.Until, other.Name)}); err != nil {
			return got, err
		}
	}
	return got, nil
}

// LeaseRelease releases the lease with a glob or an id, or with "" all leases of the caller.
func (t *Team) LeaseRelease(ctx context.Context, c Caller, member, glob string) (int64, error) {
	m, err := t.leaseHolder(ctx, c, member)
	if err != nil {
		return 0, err
	}
	n, err := t.as(c).DropFileLeases(ctx, m.SessionKey, glob)
	if err == nil && n == 0 && m.Spec.Repo != "" && glob != "" {
		n, err = t.as(c).DropFileLeases(ctx, m.SessionKey, leaseGlob(m, glob))
	}
	if err == nil && n == 0 && glob != "" {
		err = team.Errorf(team.CodeNotFound, "%s holds no lease of %q", m.Name, glob).WithReason(team.ReasonLeaseNotFound).WithHint("teamctl lease ls")
	}
	return n, err
}

// Leases returns the leases in effect.
func (t *Team) Leases(ctx context.Context) ([]ledger.FileLease, error) {
	return t.Ledger.FileLeases(ctx)
}

// leaseGlob returns the glob of a lease, within the holder's repository. An invalid glob is
// returned unchanged, to be refused.
func leaseGlob(m ledger.Member, glob string) string {
	if !team.ValidGlob(glob) {
		return glob
	}
	return services.InRepo(m.Spec.Repo, glob)
}

func (t *Team) leaseHolder(ctx context.Context, c Caller, member string) (ledger.Member, error) {
	if member == "" || member == c.Name {
		if err := t.may(ctx, c, OpWorktree); err != nil {
			return ledger.Member{}, err
		}
		return t.Ledger.Member(ctx, c.Name)
	}
	if err := t.may(ctx, c, OpWorktrees); err != nil {
		return ledger.Member{}, err
	}
	return t.Member(ctx, member)
}

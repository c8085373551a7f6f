package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// commandsHash identifies what a consent covers: these commands, in these repositories.
func commandsHash(b team.Bootstrap) string {
	all := [][]string{b.Setup, b.Teardown}
	for _, name := range slices.Sorted(maps.Keys(b.Repos)) {
		all = append(all, []string{name}, b.Repos[name].Setup, b.Repos[name].Teardown)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return "" // strings can be encoded; "" never has a consent
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// SetBootstrap sets the setup of the team's new worktrees. With allow the commands may run
// although they came with the repository; a consent on this machine lasts until the commands
// change. allowed reports whether they may run.
func (t *Team) SetBootstrap(ctx context.Context, c Caller, b team.Bootstrap, allow bool) (allowed bool, err error) {
	if err := t.may(ctx, c, OpSettings); err != nil {
		return false, err
	}
	b.Hash, b.Consent = commandsHash(b), ""
	setup, teardown := b.Commands()
	commands := append(setup, teardown...)
	if len(commands) > 0 && b.FromRepo {
		row, err := t.Ledger.Team(ctx)
		if err != nil {
			return false, err
		}
		if b.Consent, err = t.Env.consented(ctx, c, b.Hash, row.Repo, commands, allow); err != nil {
			return false, err
		}
	}
	return b.Allowed() || len(commands) == 0, t.as(c).Set(ctx, trees.SettingBootstrap, b)
}

// Bootstrap returns the setup of the team's new worktrees.
func (t *Team) Bootstrap(ctx context.Context) (b team.Bootstrap, err error) {
	_, err = t.Ledger.Setting(ctx, trees.SettingBootstrap, &b)
	return b, err
}

// PrepareIn requests another setup of worktrees.
type PrepareIn struct {
	Members []string `json:"members,omitempty"` // none: all
	Allow   bool     `json:"allow,omitempty"`   // consent to commands that came with the repository
}

// Prepared is the setup of one worktree.
type Prepared struct {
	Member string `json:"member"`
	team.WorktreeSetUp
	Log     string `json:"log"`
	Problem string `json:"problem,omitempty"`
	Err     error  `json:"-"`
}

// Prepare runs the setup of worktrees again. Each has its own result; the error joins all.
func (t *Team) Prepare(ctx context.Context, c Caller, in PrepareIn) ([]Prepared, error) {
	if err := t.may(ctx, c, OpWorktrees); err != nil {
		return nil, err
	}
	b, err := t.Bootstrap(ctx)
	if err != nil {
		return nil, err
	}
	if in.Allow {
		if _, err := t.SetBootstrap(ctx, c, b, true); err != nil {
			return nil, err
		}
		if b, err = t.Bootstrap(ctx); err != nil {
			return nil, err
		}
	}
	if setup, _ := b.Commands(); !b.Allowed() && len(setup) > 0 {
		return nil, team.Errorf(team.CodeDenied, "the setup commands came with the repository: %s", services.FileList(setup)).
			WithReason(team.ReasonConsent).WithHint("read them, then: teamctl worktree prepare --allow")
	}
	groups, err := t.treesByRepo(ctx, in.Members, false)
	if err != nil {
		return nil, err
	}
	out := []Prepared{}
	var errs []error
	for _, g := range groups {
		for _, m := range g.Members {
			if err := ctx.Err(); err != nil {
				return out, joinErrors(append(errs, err))
			}
			env, err := t.treeEnv(ctx, g.Repo, m)
			if err != nil {
				return out, err
			}
			set := trees.SetupIn(b, t.Layout, m, env)
			set.Resting = func() bool { return t.restingNow(ctx, m.SessionKey) }
			p := Prepared{Member: m.Name, Log: set.Log}
			if p.WorktreeSetUp, p.Err = g.Repo.Setup(ctx, set); p.Err != nil {
				p.Problem = p.Err.Error()
				errs = append(errs, p.Err)
			}
			out = append(out, p)
		}
	}
	return out, joinErrors(errs)
}

// restingNow reports whether a member is known not to be working.
func (t *Team) restingNow(ctx context.Context, session string) bool {
	m, err := t.Ledger.MemberBySession(ctx, session)
	if err != nil || !resting(m) {
		return false
	}
	held, err := t.holders(ctx)
	return err == nil && !held[session]
}

func (t *Team) treeEnv(ctx context.Context, r *worktree.Repo, m ledger.Member) (map[string]string, error) {
	base, err := r.PortBase(ctx, m.Worktree)
	if team.IsCode(err, team.CodeLimit) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.Environ(m.Worktree, base), nil
}

// teardown runs the team's teardown commands in a worktree that is about to be removed. A failure
// is a note, and does not prevent the removal.
func (t *Team) teardown(ctx context.Context, r *worktree.Repo, b team.Bootstrap, m ledger.Member) (note string) {
	run := b.Of(m.Spec.Repo).Teardown
	if len(run) == 0 || !b.Allowed() {
		return ""
	}
	if _, err := os.Lstat(m.Worktree); err != nil {
		return ""
	}
	env, err := t.treeEnv(ctx, r, m)
	if err == nil {
		in := trees.SetupIn(b, t.Layout, m, env)
		in.Run, in.Limit = run, min(in.Limit, 2*time.Minute)
		_, err = r.Teardown(ctx, in)
	}
	if err != nil {
		return fmt.Sprintf("teardown of %s: %v", m.Name, err)
	}
	return ""
}

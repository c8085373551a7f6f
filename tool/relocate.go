package tool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// Relocated is a team whose directory has moved.
type Relocated struct {
	Team      string   `json:"team"`
	Status    string   `json:"status"` // "relocated", or "already_here"
	From      string   `json:"from,omitempty"`
	Path      string   `json:"path"`
	Worktrees []string `json:"worktrees,omitempty"` // that have moved with it
	Restarted []string `json:"restarted,omitempty"` // members that were running with the old paths
}

// Moved lists the teams in the home directory whose directories were moved, by name.
func (e *Env) Moved(ctx context.Context) ([]string, error) {
	keys, err := e.Keys()
	if err != nil {
		return nil, err
	}
	var moved []string
	for _, k := range keys {
		t, err := e.Open(ctx, k)
		if err != nil {
			continue // commands on that team report it
		}
		if team.ReasonOf(t.Elsewhere) == team.ReasonTeamMoved {
			moved = append(moved, k)
		}
		if err := t.Close(); err != nil {
			return nil, err
		}
	}
	return moved, nil
}

// Relocate records a team's current directory as its own: the ledger becomes writable, git knows
// its worktrees there, and running members are restarted with the new paths. It refuses while the
// original of a copy exists. An interrupted call can be repeated.
func (e *Env) Relocate(ctx context.Context, c Caller, key string) (out Relocated, err error) {
	out = Relocated{Team: key, Status: "relocated"}
	if !c.Person {
		return out, errRole(c, OpMaintenance)
	}
	t, err := e.Open(ctx, key)
	if err != nil {
		return out, err
	}
	err = t.relocate(ctx, &out)
	if err = errors.Join(err, t.Close()); err != nil {
		return out, firstCoded(err)
	}
	if out.Status != "relocated" {
		return out, nil
	}
	if err := e.rebuildRegistry(); err != nil {
		return out, err
	}
	return out, e.supervised(ctx, &out)
}

// relocate updates the ledger and the repositories.
func (t *Team) relocate(ctx context.Context, out *Relocated) error {
	p, err := t.Ledger.Place(ctx)
	if err != nil {
		return err
	}
	out.From, out.Path = p.Path, t.Layout.Dir
	switch team.ReasonOf(t.Elsewhere) {
	case "":
		out.From, out.Status = "", "already_here"
	case team.ReasonTeamCopied:
		if err := t.otherTeam(ctx, p); err != nil {
			return err
		}
		fallthrough
	default:
		members, err := t.Ledger.Members(ctx, false)
		if err != nil {
			return err
		}
		for _, m := range members {
			if m.Name != team.LeadName && m.Desired == team.WantRunning && m.Observed.Alive() {
				out.Restarted = append(out.Restarted, m.Name)
			}
		}
		lock, err := t.alone(ctx, p)
		if err != nil {
			return err
		}
		now, err := ledger.PlaceAt(t.Layout.Dir, t.Layout.Dir)
		if err == nil {
			now.ID, now.From = p.ID, p.Path
			now.Unseen = true
			err = t.Ledger.SetPlace(ctx, now)
			out.Path = now.Path
		}
		if err = errors.Join(err, lock.Unlock()); err != nil {
			return err
		}
	}
	return t.reconnect(ctx, out)
}

// otherTeam returns nil if another team is at the place of a copy's original.
func (t *Team) otherTeam(ctx context.Context, p ledger.Place) error {
	db, err := ledger.Open(ctx, team.Layout{Dir: p.Path}.Ledger(), ledger.Options{})
	if err != nil {
		return team.Errorf(team.CodeConflict, "%s cannot be read, and may be the original of this copy: %w", p.Path, err).
			WithReason(team.ReasonTeamCopied).WithHint("move it away")
	}
	there, err := ledger.New(db, nil).Place(ctx)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if there.ID != p.ID {
		return nil
	}
	return team.Errorf(team.CodeConflict, "%s is a copy: the team itself is in %s", t.Layout.Dir, p.Path).WithReason(team.ReasonTeamCopied).
		WithHint("to use this copy instead, move the original away, or: " + team.EnvHome + "=" + team.ShellQuote(team.LayoutAt(p.Path).Home.Dir) + " teamctl delete " + t.Layout.Key)
}

// alone waits until the supervisor of the old directory has exited, which it does once it notices
// the move.
func (t *Team) alone(ctx context.Context, p ledger.Place) (*filelock.Held, error) {
	if t.Env.Dial != nil { // its socket has the old path
		if _, err := t.Env.Dial(ctx, At(p, t.Layout), false); err != nil {
			return nil, err
		}
	}
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	lock, err := filelock.Lock(wait, t.Layout.SupervisorLock())
	if err != nil {
		return nil, team.Errorf(team.CodeTimeout, "a supervisor still has %s: %w", t.Layout.Dir, err).WithHint("teamctl doctor")
	}
	return lock, nil
}

// reconnect registers moved worktrees with git.
func (t *Team) reconnect(ctx context.Context, out *Relocated) error {
	trees, err := t.trees(ctx)
	if err != nil {
		return err
	}
	for _, at := range trees {
		var paths []string
		for _, m := range at.members {
			if !strings.HasPrefix(m.Worktree, out.Path+string(filepath.Separator)) {
				continue
			}
			if _, err := os.Lstat(m.Worktree); err == nil {
				paths = append(paths, m.Worktree)
			}
		}
		if len(paths) == 0 {
			continue
		}
		repo, err := worktree.OpenRepo(ctx, at.root)
		if err != nil {
			return err
		}
		if err := repo.Reconnect(ctx, paths...); err != nil {
			return err
		}
		out.Worktrees = append(out.Worktrees, paths...)
	}
	return nil
}

// supervised starts a supervisor for the new directory, which restarts members that run with the
// old paths.
func (e *Env) supervised(ctx context.Context, out *Relocated) (err error) {
	t, err := e.Open(ctx, out.Team)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	_, _, err = t.Members(ctx)
	return err
}

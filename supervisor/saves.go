package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// saveLimit bounds a checkpoint, which is never waited for but before a stop.
const (
	saveLimit       = time.Minute
	saveLimitOnStop = 3 * time.Second
)

// savesOn takes a checkpoint on an event that says that a member has come to rest:
// it is idle, or one of its tasks is completed. Of a plain command nobody knows
// either; what there is of it is its exit.
func (s *Supervisor) savesOn(e ledger.Event) {
	name, why := "", ""
	switch {
	case e.What == "member.activity" && e.After == string(team.Idle):
		name, why = e.ID, "idle"
	case e.What == "task.completed":
		name, why = e.Who, "task "+e.ID+" is done"
	default:
		return
	}
	if m := s.find(name); m != nil && !team.KindOf(m.row.Spec.Agent).Worker {
		s.save(m.row, why)
	}
}

// save takes a checkpoint of a member's worktree beside everything else; while one
// is being taken, what is asked for meanwhile is one more after it.
func (s *Supervisor) save(row ledger.Member, why string) {
	if row.Worktree == "" || row.Spec.WorktreeMode != "own" {
		return
	}
	if _, busy := s.saving[row.SessionKey]; busy {
		s.saving[row.SessionKey] = why
		return
	}
	s.saving[row.SessionKey] = ""
	s.step(func(ctx context.Context) message {
		select {
		case s.saves <- struct{}{}:
			defer func() { <-s.saves }()
		case <-ctx.Done():
			return nil
		}
		s.saveNow(ctx, row, why, saveLimit)
		return saved{row}
	})
}

// saved is the end of a checkpoint.
type saved struct{ row ledger.Member }

func (d saved) apply(s *Supervisor) {
	again := s.saving[d.row.SessionKey]
	delete(s.saving, d.row.SessionKey)
	if again != "" {
		s.save(d.row, again)
	}
}

// saveNow takes a checkpoint. One that fails is logged, and harms nothing.
func (s *Supervisor) saveNow(ctx context.Context, row ledger.Member, why string, limit time.Duration) {
	if row.Worktree == "" || row.Spec.WorktreeMode != "own" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := os.Lstat(row.Worktree); errors.Is(err, fs.ErrNotExist) {
		return // deleted under the agent; the branch has its commits
	}
	repo, _, err := worktree.OpenWorktree(ctx, row.Worktree)
	if err == nil {
		_, _, err = Saver{Layout: s.cfg.Layout, Ledger: s.cfg.Ledger}.Save(ctx, repo, row, why)
	}
	if err != nil && s.ctx.Err() == nil {
		s.log.Warn("checkpoint", "member", row.Name, "err", err)
	}
}

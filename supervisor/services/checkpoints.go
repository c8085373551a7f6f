package services

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// saveLimit bounds a checkpoint for which nothing waits.
const saveLimit = time.Minute

// Slots limits the concurrent git processes beside the loop.
type Slots chan struct{}

// NewSlots returns one slot for each processor.
func NewSlots() Slots { return make(Slots, runtime.NumCPU()) }

func (s Slots) take(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s Slots) give() { <-s }

// Checkpoints saves the state of worktrees whose members have come to rest.
type Checkpoints struct {
	loop.Quiet
	team   loop.Team
	slots  Slots
	saving map[string]string // running, by session: why another one was requested, or ""
}

// NewCheckpoints returns the service.
func NewCheckpoints(t loop.Team, slots Slots) *Checkpoints {
	return &Checkpoints{team: t, slots: slots, saving: map[string]string{}}
}

// Event takes a checkpoint when a member has come to rest: it is idle, or one of its tasks is
// completed. A plain command reports neither; for it the exit counts.
func (c *Checkpoints) Event(e ledger.Event) {
	name, why, rests := "", "", false
	switch {
	case e.What == team.EventMemberActivity && e.After == string(team.Idle):
		name, why, rests = e.ID, "idle", true
	case e.What == team.EventTaskCompleted:
		name, why = e.Who, "task "+e.ID+" is done"
	default:
		return
	}
	m, ok := c.Bus.Find(name)
	if kind := team.KindOf(m.Spec.Agent); !ok || kind.Worker || rests && kind.SavesAtRest {
		return // it saves its work itself; its exit counts here if it is killed before
	}
	c.Save(m.Member, why)
}

// Save takes a checkpoint beside the loop. All requests during a running checkpoint of the member
// result in one more after it.
func (c *Checkpoints) Save(row ledger.Member, why string) {
	if !ownTree(row) {
		return
	}
	if _, busy := c.saving[row.SessionKey]; busy {
		c.saving[row.SessionKey] = why
		return
	}
	c.saving[row.SessionKey] = ""
	c.Bus.Go("checkpoint", func(ctx context.Context) func() {
		if !c.slots.take(ctx) {
			return nil
		}
		defer c.slots.give()
		c.Now(ctx, row, why, saveLimit)
		return func() { c.saved(row) }
	})
}

func (c *Checkpoints) saved(row ledger.Member) {
	again := c.saving[row.SessionKey]
	delete(c.saving, row.SessionKey)
	if again != "" {
		c.Save(row, again)
	}
}

// Now takes a checkpoint within limit, from any goroutine. A failure is only logged.
func (c *Checkpoints) Now(ctx context.Context, row ledger.Member, why string, limit time.Duration) {
	if !ownTree(row) {
		return
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := os.Lstat(row.Worktree); errors.Is(err, fs.ErrNotExist) {
		return // the worktree was deleted; the branch has its commits
	}
	repo, _, err := worktree.OpenWorktree(within, row.Worktree)
	if err == nil {
		_, _, err = Saver{Layout: c.team.Layout, Ledger: c.team.Ledger}.Save(within, repo, row, why)
	}
	if err != nil && ctx.Err() == nil {
		c.team.Log.Warn("checkpoint", "member", row.Name, "err", err)
	}
}

// ownTree reports whether a member has a worktree that no other member uses.
func ownTree(row ledger.Member) bool { return row.Worktree != "" && row.Spec.WorktreeMode == "own" }

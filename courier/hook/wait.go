package hook

import (
	"context"
	"os"
	"time"

	"github.com/teamctl/teamctl/adapter"
	"github.com/teamctl/teamctl/courier"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// busyGrace is how long the waiting hook leaves mail for a busy agent to the hooks
// of its turn. An interrupted turn has no more of them.
const busyGrace = 20 * time.Second

// wait is the hook that waits in the background until there is mail for an idle
// agent, and then wakes it. There is one at a time.
func (r *run) wait(ctx context.Context) error {
	lock, ok, err := filelock.TryLock(courier.WaitLock(r.bundle))
	if err != nil || !ok {
		return firstError(r.Write(adapter.HookReply{}), err)
	}
	defer func() { _ = lock.Unlock() }()
	wrote := false
	err = r.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		changes, stop, err := t.Ledger.Changes(ctx)
		if err != nil {
			return err
		}
		defer stop()
		var since time.Time // there has been mail for a busy agent
		for {
			waiting, err := t.Ledger.Waiting(ctx, c.Session)
			if err != nil {
				return err
			}
			var again <-chan time.Time
			r.now = time.Now()
			no := false
			if len(waiting) > 0 {
				if no, err = r.blocked(ctx, t, c.Session); err != nil {
					return err
				}
			}
			if len(waiting) > 0 && !no { // the end of a limit is a change
				if since.IsZero() {
					since = time.Now()
				}
				if left := busyGrace - time.Since(since); r.busy(c.Session) && left > 0 {
					t := time.NewTimer(min(left, time.Second))
					defer t.Stop()
					again = t.C
				} else if wrote, err = r.give(ctx, t, c); wrote || err != nil {
					return err
				} else {
					t := time.NewTimer(time.Second) // posted, and mailed in a moment
					defer t.Stop()
					again = t.C
				}
			} else {
				since = time.Time{}
			}
			select {
			case <-changes:
			case <-again:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if _, err := os.Stat(t.Layout.Ledger()); err != nil {
				return err // the team is gone
			}
		}
	})
	if !wrote {
		err = firstError(err, r.Write(adapter.HookReply{}))
	}
	if wrote {
		_ = r.Tell(r.name, r.gen, team.Observation{Tier: team.TierHook, Activity: team.Working, At: time.Now(), Source: "hook Wait"})
	}
	return err
}

func (r *run) busy(session string) bool {
	c, err := courier.ReadConversation(r.bundle, session)
	return err == nil && c.Working
}

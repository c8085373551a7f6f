package hook

import (
	"context"
	"os"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// busyGrace is how long the waiting hook leaves mail for a busy agent to the hooks of its turn. An
// interrupted turn calls no further hooks.
const busyGrace = 20 * time.Second

// waitAgain is the waiting hook's pause after one failed look, waitMost after many: the mail is
// still waiting, and nothing else may wake the agent.
const (
	waitAgain = time.Second
	waitMost  = 30 * time.Second
)

// wait is the hook that waits in the background for mail, wakes the idle agent and gives the mail.
// One runs at a time. It exits with the team, with its agent, or with its answer; a busy ledger is
// no reason to exit.
func (r *run) wait(ctx context.Context) error {
	lock, ok, err := filelock.TryLock(waitLock(r.bundle))
	if err != nil || !ok {
		return firstError(r.Write(adapter.HookReply{}), err)
	}
	defer func() { _ = lock.Unlock() }()
	// A version that waits for its hooks would wait for this one. That can happen only if the
	// version was unknown at the start.
	link, err := courier.ReadLink(r.bundle, r.gen)
	if v, _ := adapter.ParseVersion(link.Version); err == nil && link.Assumed != "" && !adapter.Waits(link.Agent, v) {
		return r.Write(adapter.HookReply{})
	}
	wrote := false
	err = r.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		changes, stop, err := t.Ledger.Changes(ctx)
		if err != nil {
			return err
		}
		defer stop()
		var since time.Time // since when there has been mail for a busy agent
		var failed time.Duration
		again := time.NewTimer(time.Hour)
		defer again.Stop()
		for {
			var rest time.Duration
			wrote, rest, err = r.wake(ctx, t, c, &since)
			switch {
			case wrote:
				return err
			case err == nil:
				failed = 0
			default:
				failed = min(max(2*failed, waitAgain), waitMost)
				rest = failed
			}
			again.Stop()
			if rest > 0 {
				again.Reset(rest)
			}
			select {
			case <-changes:
			case <-again.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if _, err := os.Stat(t.Layout.Ledger()); err != nil {
				return err // the team was deleted
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

// wake gives waiting mail if the agent is to be woken for it now. rest is the time after which to
// look again even without a change; 0 means never. since is the time since when there has been
// mail for a busy agent.
func (r *run) wake(ctx context.Context, t *tool.Team, c tool.Caller, since *time.Time) (wrote bool, rest time.Duration, err error) {
	waiting, err := t.Ledger.Waiting(ctx, c.Session)
	if err != nil {
		return false, 0, err
	}
	r.now = time.Now()
	no := false
	if len(waiting) > 0 {
		if no, err = r.blocked(ctx, t, c.Session); err != nil {
			return false, 0, err
		}
	}
	if len(waiting) == 0 || no { // the end of a limit is a change
		*since = time.Time{}
		return false, 0, nil
	}
	if since.IsZero() {
		*since = time.Now()
	}
	if left := busyGrace - time.Since(*since); r.busy(c.Session) && left > 0 {
		return false, min(left, time.Second), nil
	}
	wrote, err = r.give(ctx, t, c)
	return wrote, time.Second, err // posted mail is in the mailbox in a moment
}

func (r *run) busy(session string) bool {
	c, err := courier.ReadConversation(r.bundle, session)
	return err == nil && c.Working
}

package worktree

import (
	"context"
	"time"
)

// settleTime is how long an operation that wants a worktree for itself waits for a
// git that is at work there: a checkpoint takes milliseconds, a commit seconds.
const settleTime = 5 * time.Second

// settleTick is the pause between two looks at the processes.
const settleTick = 10 * time.Millisecond

// settled are the processes in t once no git works there any more, or those that
// are there when the wait is over. Without a git there is no wait.
func (t tree) settled(ctx context.Context, wait time.Duration) ([]int, error) {
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	limit := time.NewTimer(wait)
	defer limit.Stop()
	for {
		list, err := busy(ctx, t.at, t.path)
		if err != nil || len(gitsAmong(ctx, list)) == 0 {
			return list, err
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return list, nil
		case <-ctx.Done():
			return nil, ended("wait for the git", t.at, ctx.Err())
		}
	}
}

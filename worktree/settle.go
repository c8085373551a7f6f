package worktree

import (
	"context"
	"slices"
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
		list, working, err := lookFor(func() ([]int, error) { return busy(ctx, t.at, t.path) },
			func(list []int) []int { return gitsAmong(ctx, list) })
		if err != nil || !working {
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

// lookFor is what look finds, and whether one of them is a git. A git that ends
// between the look and the question what it is would stand there as some process that
// works in the worktree, so what is no git must be there in a second look too.
func lookFor(look func() ([]int, error), gits func([]int) []int) (list []int, working bool, err error) {
	if list, err = look(); err != nil || len(list) == 0 {
		return list, false, err
	}
	if len(gits(list)) > 0 {
		return list, true, nil
	}
	again, err := look()
	return slices.DeleteFunc(list, func(pid int) bool { return !slices.Contains(again, pid) }), false, err
}

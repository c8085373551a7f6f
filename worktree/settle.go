package worktree

import (
	"context"
	"slices"
	"time"
)

// settleTime is how long an operation that needs a worktree for itself waits
// for a git that is running there: a checkpoint takes milliseconds, a commit
// seconds.
const settleTime = 5 * time.Second

// settleTick is the interval between two checks of the processes.
const settleTick = 10 * time.Millisecond

// settled returns the processes in t once no git is running there, or when the
// wait is over. Without a git it does not wait.
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

// lookFor returns what look finds, and whether one of the processes is a git. A
// git that exits between look and gits would be taken for some other process in
// the worktree, so a process that is not git must also be found by a second
// look.
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

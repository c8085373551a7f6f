package worktree

import (
	"context"
	"os"
	"strings"

	"github.com/teamctl/teamctl/internal/procfs"
	"github.com/teamctl/teamctl/team"
)

// busy returns the PIDs of the processes, other than this one, whose working
// directory is at or below one of dirs. It skips processes of other users that
// it may not inspect; any other doubt is an error.
func busy(_ context.Context, dirs ...string) ([]int, error) {
	all, err := procfs.PIDs()
	if err != nil {
		return nil, conflict(team.ReasonWorktreeUnknown, "list processes: %w", err)
	}
	var pids []int
	for _, pid := range all {
		if pid == os.Getpid() {
			continue
		}
		cwd, err := procfs.Dir(pid)
		if err != nil {
			continue // exited, a kernel thread, or not readable by this user
		}
		for _, d := range dirs {
			if cwd == d || strings.HasPrefix(cwd, d+"/") {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids, nil
}

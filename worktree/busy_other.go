//go:build !linux

package worktree

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// busy returns the PIDs of the processes, other than this one, whose working
// directory is at or below one of dirs, according to lsof. Without lsof it
// returns an error.
func busy(ctx context.Context, dirs ...string) ([]int, error) {
	cmd := exec.CommandContext(ctx, "lsof", "-n", "-P", "-w", "-d", "cwd", "-F", "pn")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	cmd.WaitDelay = stopGrace
	var exit *exec.ExitError
	// lsof exits with status 1 if it could not inspect some process.
	if err := cmd.Run(); err != nil && (!errors.As(err, &exit) || stdout.Len() == 0) {
		return nil, conflict(team.ReasonWorktreeUnknown, "list processes with lsof: %w", err)
	}
	var pids []int
	pid := 0
	for _, l := range strings.Split(stdout.String(), "\n") {
		if l == "" {
			continue
		}
		switch l[0] {
		case 'p':
			pid, _ = strconv.Atoi(l[1:])
		case 'n':
			for _, d := range dirs {
				if pid != 0 && pid != os.Getpid() && (l[1:] == d || strings.HasPrefix(l[1:], d+"/")) {
					pids = append(pids, pid)
					break
				}
			}
		}
	}
	return pids, nil
}

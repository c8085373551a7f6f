package worktree

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/internal/procfs"
)

// gitsAmong returns the processes in list that are a running git; a zombie
// holds no locks.
func gitsAmong(_ context.Context, list []int) []int {
	var gits []int
	for _, pid := range list {
		if s, err := procfs.Of(pid); err == nil && strings.HasPrefix(s.Name, "git") && s.State != 'Z' {
			gits = append(gits, pid)
		}
	}
	return gits
}

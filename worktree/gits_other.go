//go:build !linux

package worktree

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// gitsAmong are the processes that are a git, as ps names them; without an
// answer a process counts as one.
func gitsAmong(ctx context.Context, list []int) []int {
	var gits []int
	for _, pid := range list {
		out, err := exec.CommandContext(ctx, "ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
		if err != nil || strings.HasPrefix(filepath.Base(strings.TrimSpace(string(out))), "git") {
			gits = append(gits, pid)
		}
	}
	return gits
}

//go:build !linux

package worktree

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// gitsAmong returns the processes in list that are git according to ps; if ps
// fails, a process counts as git.
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

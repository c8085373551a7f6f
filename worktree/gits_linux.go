package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// gitsAmong are the processes that are a git and live: a zombie holds nothing.
func gitsAmong(_ context.Context, list []int) []int {
	var gits []int
	for _, pid := range list {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue
		}
		// pid (comm) state ...; comm may contain anything.
		s := string(data)
		open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
		if open < 0 || end < open || end+2 >= len(s) {
			continue
		}
		if strings.HasPrefix(s[open+1:end], "git") && s[end+2] != 'Z' {
			gits = append(gits, pid)
		}
	}
	return gits
}

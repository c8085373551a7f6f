package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// gitsAmong returns the processes in list that are a running git; a zombie
// holds no locks.
func gitsAmong(_ context.Context, list []int) []int {
	var gits []int
	for _, pid := range list {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue
		}
		// The format is "pid (comm) state ..."; comm may contain anything.
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

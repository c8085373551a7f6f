package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// maxAncestors bounds the walk up the processes; a cycle cannot be, but a process
// may end and its number be used again while we look.
const maxAncestors = 64

// startedBy is the member of the team that one of our ancestors says it is, or "".
// What was detached from the member that started it (a tmux server) ends the walk.
func startedBy(l team.Layout) string {
	pid := os.Getppid()
	for range maxAncestors {
		if pid <= 1 {
			return ""
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			return "" // another user's, or gone: not one of ours
		}
		var id, home, detached string
		for _, kv := range bytes.Split(env, []byte{0}) {
			switch name, value, _ := strings.Cut(string(kv), "="); name {
			case team.EnvAgentID:
				id = value
			case team.EnvHome:
				home = value
			case team.EnvDetached:
				detached = value
			}
		}
		if detached == "1" {
			return ""
		}
		if _, key, ok := team.ParseAgentID(id); ok && key == l.Key && home == l.Home.Dir {
			return id
		}
		if pid, err = parentOf(pid); err != nil {
			return ""
		}
	}
	return ""
}

func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name may hold anything, a bracket too: what follows the last one is ours.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0, fmt.Errorf("read the parent of %d", pid)
	}
	return strconv.Atoi(fields[1])
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/procfs"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// maxAncestors bounds the walk up the process tree. There is no cycle, but a process may exit and
// its pid be reused during the walk.
const maxAncestors = 64

// startedBy returns the id of the team's member that this process descends from, or "".
// // A process can change its environment, its session and, by ending its parent, its ancestors.
// It cannot change its control group, and the shim of its member adopts it; both decide before the
// environment of an ancestor does. The walk ends at a tmux server or supervisor of a team: a
// person's shell runs below those, whoever ran the first command that needed one.
func startedBy(l team.Layout) string { return memberAbove(l, true) }

// heldBy is startedBy restricted to members that teamctl runs. A program that has joined belongs
// to the person, although its children inherit the member's name.
func heldBy(l team.Layout) string { return memberAbove(l, false) }

// memberAbove is startedBy; named reports whether a name in an ancestor's environment counts.
func memberAbove(l team.Layout, named bool) string {
	if id := memberOfGroup(l); id != "" {
		return id
	}
	known := memberProcs(l)
	pid := os.Getppid()
	for range maxAncestors {
		if pid <= 1 {
			return ""
		}
		id, err := proc.Identify(pid)
		if err != nil {
			return "" // exited
		}
		if member, ok := known[id]; ok {
			return member
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			return "" // of another user
		}
		vars := environOf(env)
		if vars[team.EnvDetached] == "1" && ownServer(l.Home, id) {
			return ""
		}
		if _, key, ok := team.ParseAgentID(vars[team.EnvAgentID]); named && ok && key == l.Key && sameDir(vars[team.EnvHome], l.Home.Dir) {
			return vars[team.EnvAgentID]
		}
		stat, err := procfs.Of(pid)
		if err != nil {
			return ""
		}
		pid = stat.Parent
	}
	return ""
}

// memberOfGroup returns the member in whose control group this process is, or "".
func memberOfGroup(l team.Layout) string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		_, rest, ok := strings.Cut(strings.TrimSpace(line), "/teamctl/"+l.Key+"/")
		if !ok {
			continue
		}
		leaf, _, _ := strings.Cut(rest, "/")
		i := strings.LastIndexByte(leaf, '-') // a generation follows
		if i <= 0 {
			continue
		}
		if _, err := os.Stat(string(l.Bundle(leaf[:i]))); err == nil {
			return team.AgentID(leaf[:i], l.Key)
		}
	}
	return ""
}

// memberProcs returns the shims and agents of the team's newest generations, with the id of their
// member.
func memberProcs(l team.Layout) map[backends.ProcID]string {
	bundles, err := os.ReadDir(l.Members())
	if err != nil {
		return nil
	}
	known := map[backends.ProcID]string{}
	for _, d := range bundles {
		p, err := bundle.ReadProc(l.Bundle(d.Name()), "")
		if err != nil || p.Shim == p.Agent { // an in-process member: the process is the supervisor
			continue
		}
		known[p.Shim], known[p.Agent] = team.AgentID(d.Name(), l.Key), team.AgentID(d.Name(), l.Key)
	}
	return known
}

// ownServer reports whether a process is the recorded tmux server or supervisor of a team in the
// home directory.
func ownServer(home team.Home, id backends.ProcID) bool {
	teams, err := os.ReadDir(home.TeamsDir())
	if err != nil {
		return false
	}
	for _, d := range teams {
		l := home.Team(d.Name())
		if data, err := regular.ReadFile(l.SupervisorPID()); err == nil {
			if pid, _, err := team.ParseSupervisorPID(data); err == nil && pid == id.PID {
				return true
			}
		}
		if server, ok := tmux.Recorded(l); ok && server == id {
			return true
		}
	}
	return false
}

// environOf parses a process's environment. The first of several entries with the same name
// counts, as for getenv.
func environOf(data []byte) map[string]string {
	vars := map[string]string{}
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		name, value, _ := strings.Cut(string(kv), "=")
		if _, ok := vars[name]; !ok {
			vars[name] = value
		}
	}
	return vars
}

// sameDir reports whether two paths lead to the same directory.
func sameDir(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(ia, ib)
}
